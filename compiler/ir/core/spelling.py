"""The spellings of the script dialect, which changed over TVM's releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["new", "middle", "old"]


@dataclass(frozen=True, slots=True)
class Spelling:
    """The words of one generation of the dialect for blocks and buffers."""

    block: str
    block_attr: str
    alloc_buffer: str
    prim_func: str
    let: str  # the type in `x: T.float32 = value`
    with_let: str  # if the scope of the name ends before the statements do
    buffer: str  # the type of a parameter
    symbol: str  # the declaration of a symbolic variable
    symbols_in_signature: bool  # T.Buffer(("n",), "float32") instead of a T.handle and a match


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
    """Return the spelling of a dialect.

    Raises:
        ValueError: If the dialect does not exist.
    """
    if dialect not in SPELLINGS:
        names = ", ".join(repr(name) for name in SPELLINGS)
        raise ValueError(f"unknown dialect {dialect!r}: expected one of {names}")
    return SPELLINGS[dialect]
