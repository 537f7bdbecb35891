"""Combine the partial results of the threads of a block: by exchanges in warps and shared memory.

Every thread ends with the result, so that no broadcast is needed. There are three ways, for `n`
threads along threadIdx.x:

n a power of two up to 32     exchanges between the lanes of a warp, at distances n / 2, ..., 2, 1
n a multiple of 32            those at 16, ..., 1; then one value of each warp in shared memory
all others                    a tree in shared memory

The tree combines neighbours only, in their order. So it serves reducers that are not commutative,
and threads along other axes. Barriers are inserted later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler.ir.analysis.reducer import Reducer
from compiler.ir.core.dtypes import bits
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Call,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
    seq,
    static_int,
)
from compiler.passes.common.thread_loops import LANES
from compiler.target.gpus import WARP_SIZE


@dataclass(frozen=True, slots=True)
class Partial:
    """The partial result of a thread: an element of one local buffer for each target."""

    buffers: tuple[Buffer, ...]
    indices: tuple[Expr, ...]
    reducer: Reducer

    @property
    def values(self) -> tuple[Expr, ...]:
        """Return the current values."""
        return tuple(Load(buffer, self.indices) for buffer in self.buffers)

    def combined_with(self, values: Sequence[Expr]) -> Stmt:
        """Return the statement that combines the partial result with more values."""
        return _assign(self.buffers, self.indices, self.reducer(self.values, values))


def combine_threads(partial: Partial, threads: Sequence[For], around: Sequence[For]) -> Stmt:
    """Return the statement after which each thread has the result of all in its partial result.

    Args:
        partial: The partial result of a thread.
        threads: The loops over the threads that reduce together, the outermost first.
        around: The other loops over threads around, for each iteration of which there is a result.
    """
    extents = [static_int(loop.extent) for loop in threads]
    count = prod(extents)
    is_along_warp = [loop.thread for loop in threads] == [LANES] and partial.reducer.is_commutative
    if is_along_warp and count <= WARP_SIZE and not count & (count - 1):
        return _exchanges(partial, count)
    numbers = tuple(Var(loop.var.name, loop.var.dtype) for loop in threads)
    number: Expr = numbers[0]
    for var, extent in zip(numbers[1:], extents[1:], strict=True):
        number = BinOp("+", BinOp("*", number, _int(extent, number)), var)
    is_by_warps = is_along_warp and count % WARP_SIZE == 0
    slots = _Slots(partial, tuple(around), count // WARP_SIZE if is_by_warps else count)
    if is_by_warps:
        steps = [_exchanges(partial, WARP_SIZE), *slots.stores_of_warps(number)]
        combination = seq(_in_threads(threads, numbers, seq(*steps)), slots.loads(slots.count))
    else:
        tree = [_in_threads(threads, numbers, step) for step in slots.tree(number)]
        combination = seq(*tree, slots.loads(1))
    for buffer in slots.buffers:
        combination = Allocate(buffer, combination)
    return combination


def _exchanges(partial: Partial, count: int) -> Stmt:
    """Combine the values of `count` lanes that follow each other, a power of two."""
    steps: list[Stmt] = []
    distance = count // 2
    while distance:
        names = [Var(f"{buffer.name}_other", buffer.dtype) for buffer in partial.buffers]
        step = partial.combined_with(names)
        for name, value in zip(names, partial.values, strict=True):
            assert name.dtype != "handle", "a value has a type"
            step = Let(name, Call("shuffle_xor", (value, IntImm(distance)), name.dtype), step)
        steps.append(step)
        distance //= 2
    return seq(*steps)


class _Slots:
    """Places in shared memory: `count` for each iteration of the loops around, for each target."""

    def __init__(self, partial: Partial, around: tuple[For, ...], count: int) -> None:
        self.count = count
        self._partial = partial
        self._prefix: tuple[Expr, ...] = tuple(loop.var for loop in around)
        # NVRTC loads slots as vectors of 16 bytes, the last of them whole.
        width = 16 // min(max(bits(buffer.dtype) // 8, 1) for buffer in partial.buffers)
        self._unused = -count % width if count & (count - 1) else 0
        shape = (*(loop.extent for loop in around), IntImm(count + self._unused))
        self.buffers = tuple(
            Buffer(Var(f"{buffer.name}_shared", "handle"), shape, buffer.dtype, "shared")
            for buffer in partial.buffers
        )

    def stores_of_warps(self, thread: Expr) -> list[Stmt]:
        """Return the stores of the values of first lanes, and of some value to unused slots."""
        lane, warp = (BinOp(op, thread, _int(WARP_SIZE, thread)) for op in ("%", "//"))
        store = self._store(warp, self._partial.values)
        stores: list[Stmt] = [If(Compare("==", lane, _int(0, thread)), store)]
        if self._unused:
            slot = BinOp("+", thread, _int(self.count, thread))
            store = self._store(slot, self._partial.values)
            stores.append(If(Compare("<", thread, _int(self._unused, thread)), store))
        return stores

    def tree(self, thread: Expr) -> list[Stmt]:
        """Return the steps that combine the values of neighbours until slot 0 has the result."""
        steps = [self._store(thread, self._partial.values)]
        distance = 1
        while distance < self.count:
            other = BinOp("+", thread, _int(distance, thread))
            pairs = BinOp("%", thread, _int(2 * distance, thread))
            is_first = Compare("==", pairs, _int(0, thread))
            is_pair = Logic("and", is_first, Compare("<", other, _int(self.count, thread)))
            results = self._partial.reducer(self._values(thread), self._values(other))
            steps.append(If(is_pair, _assign(self.buffers, self._at(thread), results)))
            distance *= 2
        return steps

    def loads(self, count: int) -> Stmt:
        """Return the statement by which a thread combines the values of the first slots."""
        first = _assign(self._partial.buffers, self._partial.indices, self._values(IntImm(0)))
        if count == 1:
            return first
        slot = Var("slot")
        values = self._values(BinOp("+", slot, IntImm(1)))
        step = self._partial.combined_with(values)
        return seq(first, For(slot, IntImm(count - 1), step, "unrolled"))

    def _at(self, slot: Expr) -> tuple[Expr, ...]:
        return (*self._prefix, slot)

    def _values(self, slot: Expr) -> tuple[Expr, ...]:
        return tuple(Load(buffer, self._at(slot)) for buffer in self.buffers)

    def _store(self, slot: Expr, values: Sequence[Expr]) -> Stmt:
        return _assign(self.buffers, self._at(slot), values)


def _assign(buffers: Sequence[Buffer], indices: tuple[Expr, ...], values: Sequence[Expr]) -> Stmt:
    """Store several values, which may read the elements that are overwritten."""
    if len(buffers) == 1:
        return Store(buffers[0], indices, values[0])
    names = [Var(f"new_{buffer.name}", buffer.dtype) for buffer in buffers]
    stmt = seq(*(Store(b, indices, name) for b, name in zip(buffers, names, strict=True)))
    for name, value in zip(reversed(names), reversed(values), strict=True):
        stmt = Let(name, value, stmt)
    return stmt


def _in_threads(threads: Sequence[For], numbers: Sequence[Var], stmt: Stmt) -> Stmt:
    """Run a statement in each of some threads."""
    for loop, var in zip(reversed(threads), reversed(numbers), strict=True):
        stmt = For(var, loop.extent, stmt, "thread_binding", loop.thread)
    return stmt


def _int(value: int, like: Expr) -> IntImm:
    return IntImm(value, dtype_of(like))
