"""A slow oracle of features: walks a scheduled program and touches every element of it.

It uses no tables: it runs loops one iteration at a time, evaluates indices, and counts elements and
lines as sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_int,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import children, walk

LINE_BYTES = 64

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Touched:
    """The elements of a buffer that one run of some loops touches."""

    elements: int
    box: int
    lines: int
    runs: int


class Walk:
    """All turns of the loops around a block of one store, in order.

    `values` are, by iterator and turn, the values of the block's iterators.
    """

    def __init__(self, func: PrimFunc, name: str) -> None:
        found = list(_paths(func.body, (), {name, f"{name}_update"}))
        *_, (self.loops, self.realize) = found
        self.extents = [static_int(loop.extent) for loop in self.loops]
        turns = np.indices(self.extents).reshape(len(self.loops), -1)
        self.turns = dict(zip([loop.var for loop in self.loops], turns, strict=True))
        values = [evaluate(value, self.turns) for value in self.realize.iter_values]
        self.values = [np.broadcast_to(v, (turns.shape[1],)).astype(np.int64) for v in values]

    @property
    def block(self) -> Block:
        """The block."""
        return self.realize.block

    @cached_property
    def accesses(self) -> list[tuple[Buffer, tuple[Expr, ...]]]:
        """The element that is written first, then each that is read, without the accumulator."""
        store = self.block.body
        assert isinstance(store, Store), "a block of one store"
        loads = [n for n in walk(store.value) if isinstance(n, Load)]
        reads = [(n.buffer, n.indices) for n in loads if n.buffer != store.buffer]
        return [(store.buffer, store.indices), *dict.fromkeys(reads)]

    def inside(self, depth: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the iterations in the first run of the loops from a depth inwards."""
        first = np.ones(len(self.values[0]), np.bool_)
        for loop in self.loops[:depth]:
            first &= self.turns[loop.var] == 0
        return first

    def ranges(self, depth: int) -> tuple[int, ...]:
        """Return the number of values of each iterator in one run of the loops from a depth."""
        inside = self.inside(depth)
        return tuple(len(np.unique(value[inside])) for value in self.values)

    def touched(self, depth: int, access: int) -> Touched:
        """Return the elements that the first run of the loops from a depth touches."""
        buffer, _ = self.accesses[access]
        inside = self.inside(depth)
        shape = static_shape(buffer) or (1,)
        rows = np.stack([i[inside] for i in self._indices[access]])
        real = np.all((rows >= 0) & (rows < np.array(shape)[:, None]), axis=0)
        rows = rows[:, real]
        box = int(np.prod(rows.max(axis=1) - rows.min(axis=1) + 1))
        flat = np.unique(np.ravel_multi_index(tuple(rows), shape))
        places = flat * size_bytes(buffer.dtype)
        runs = 1 + int((np.diff(flat) > 1).sum())
        return Touched(len(flat), box, len(np.unique(places // LINE_BYTES)), runs)

    def is_moved(self, loop: int, access: int) -> bool:
        """Return whether iterations of one loop alone move an access."""
        still = np.ones(len(self.values[0]), np.bool_)
        for other, its in enumerate(self.loops):
            if other != loop:
                still &= self.turns[its.var] == 0
        return any(len(np.unique(index[still])) > 1 for index in self._indices[access])

    @cached_property
    def _indices(self) -> list[list[Ints]]:
        names = dict(zip([i.var for i in self.block.iter_vars], self.values, strict=True))
        found = []
        for _, indices in self.accesses:
            own = [evaluate(index, names) for index in indices] or [np.asarray(0)]
            found.append([np.broadcast_to(i, self.values[0].shape).astype(np.int64) for i in own])
        return found


def _paths(
    stmt: Stmt, loops: tuple[For, ...], names: set[str]
) -> list[tuple[tuple[For, ...], BlockRealize]]:
    match stmt:
        case BlockRealize(_, _, block) if block.name in names:
            return [(loops, stmt)]
        case For(body=body):
            return _paths(body, (*loops, stmt), names)
        case BlockRealize(_, _, block):
            return _paths(block.body, loops, names)
        case _:
            found = [_paths(child, loops, names) for child in children(stmt)]  # type: ignore[arg-type]
            return [path for paths in found for path in paths]


def evaluate(expr: Expr, values: dict[Var, Ints]) -> Ints:
    """Return an integer expression for all values of its variables at once."""
    match expr:
        case IntImm(value):
            return np.asarray(value)
        case Var():
            return values[expr]
        case BinOp(op, lhs, rhs):
            a, b = evaluate(lhs, values), evaluate(rhs, values)
            apply = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide}
            found: Ints = (np.mod if op == "%" else apply[op])(a, b)
            return found
        case _:
            raise TypeError(f"no index is made of {expr}")
