"""The spellings of the script dialect, which changed over TVM's releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["new", "middle", "old"]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one generation of the dialect writes blocks and buffers."""

    block: str
    block_attr: str
    alloc_buffer: str
    prim_func: str
    let: str  # the type in `x: T.float32 = value`
    with_let: str  # where what follows is not all in the scope of the name
    buffer: str  # the type of a parameter
    symbol: str  # how a symbolic variable is declared
    symbols_in_signature: bool  # T.Buffer(("n",), "float32") rather than T.handle, matched later


SPELLINGS: dict[Dialect, Spelling] = {
    "new": Spelling(
        block="T.sblock",
        block_attr="T.sblock_attr",
        alloc_buffer="T.sblock_alloc_buffer",
        prim_func="T.prim_func(s_tir=True)",
        let="T.let[T.{dtype}]",
        with_let="T.LetStmt({value}) as {name}",
        buffer="T.Buffer({arguments})",
        symbol="T.{dtype}()",
        symbols_in_signature=True,
    ),
    "middle": Spelling(
        block="T.block",
        block_attr="T.block_attr",
        alloc_buffer="T.alloc_buffer",
        prim_func="T.prim_func",
        let="T.{dtype}",
        with_let="T.LetStmt({value}) as {name}",
        buffer="T.Buffer({arguments})",
        symbol="T.{dtype}()",
        symbols_in_signature=False,
    ),
    "old": Spelling(
        block="T.block",
        block_attr="T.block_attr",
        alloc_buffer="T.alloc_buffer",
        prim_func="T.prim_func",
        let="T.{dtype}",
        with_let="T.let({name}, {value})",
        buffer="T.Buffer[{arguments}]",
        symbol='T.var("{dtype}")',
        symbols_in_signature=False,
    ),
}


def spelling_of(dialect: Dialect) -> Spelling:
    """Return how a dialect writes.

    Raises:
        ValueError: If there is no such dialect.
    """
    if dialect not in SPELLINGS:
        names = ", ".join(repr(name) for name in SPELLINGS)
        raise ValueError(f"there is no dialect {dialect!r}; the dialects are: {names}")
    return SPELLINGS[dialect]
