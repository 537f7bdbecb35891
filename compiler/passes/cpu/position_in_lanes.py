"""Find the position of an extreme value in lanes: first its block, then its place in the block.

    for k in range(n):                         first[0:8], best[0:8] = 0, -inf
        (N[i], M[i]) = better(                 for k_0 in range(n // 32):
            (N[i], M[i]), (k, A[i, k])   ->        largest[0:8] = max of 4 vectors from k_0 * 32 on
        )                                          (first, best)[0:8] = better(
                                                       (first, best)[0:8], (k_0 * 32, largest)
                                                   )
                                               ...                # the lanes become one, by halves
                                               k = first[0] + the first place of best[0] in 32
                                               (N[i], M[i]) = better((N[i], M[i]), (k, best[0]))

So most vectors cost one comparison, and no index is stored for each element. If blocks do not
divide the extent, the last one overlaps the one before. The annotation is that of
`reduce_in_lanes`. Among NaN and other values, any position may be the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from compiler.ir.analysis.reducer import ReductionForm, position_reduction
from compiler.ir.arith.affine import affine
from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Cast,
    Compare,
    Expr,
    FloatImm,
    For,
    IntImm,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, substitute, walk
from compiler.passes.cpu.reduce_in_lanes import KEY

VECTORS_A_BLOCK = 4
"""Lanes of a block, as multiples of those of the state: 6 operations for 4 vectors, not 12."""


def position_in_lanes(stmt: Stmt) -> Stmt:
    """Rewrite the loops with the annotation `reduce_in_lanes` that find a position."""
    if isinstance(stmt, For) and any(key == KEY for key, _ in stmt.annotations):
        form = position_reduction(stmt.body)
        lanes = _lanes(stmt)
        if form is not None and lanes > 1 and _grows(form, stmt.var):
            return _PositionSearch(stmt, form, lanes).run()
    return map_stmt(stmt, position_in_lanes, lambda expr: expr)


def _lanes(loop: For) -> int:
    """Return the number of lanes, a power of two: as asked, or as many as fit a block."""
    lanes, extent = dict(loop.annotations)[KEY], loop.extent
    if loop.kind != "serial" or not isinstance(extent, IntImm) or not isinstance(lanes, int):
        return 1
    return 1 << (max(1, min(lanes, extent.value // VECTORS_A_BLOCK)).bit_length() - 1)


def _grows(form: ReductionForm, step: Var) -> bool:
    """Return whether each step of a loop has a larger position, and the same targets."""
    position = affine(form.values[0])
    others = {node for atom, _ in position.terms if atom != step for node in walk(atom)}
    indices = {node for target in form.targets for i in target.indices for node in walk(i)}
    return position.coefficient(step) > 0 and step not in others and step not in indices


class _PositionSearch:
    """The search of one loop: the lanes of its state, and the statements.

    A lane holds the best value that it has seen, and the first step of the block of that value.
    """

    def __init__(self, loop: For, form: ReductionForm, lanes: int) -> None:
        assert isinstance(loop.extent, IntImm), "the caller checked it"
        self._step, self._extent, self._form = loop.var, loop.extent.value, form
        self._lanes, self._block = lanes, lanes * VECTORS_A_BLOCK
        index, value = (target.buffer.dtype for target in form.targets)
        start = form.identity[1]
        assert isinstance(start, FloatImm | IntImm), "an identity is a literal"
        self._is_max = start.value == smallest_and_largest(value)[0]
        infinity = FloatImm(-inf if self._is_max else inf, value)
        self._worst = infinity if is_float(value) else start
        self._first = Buffer(Var("first_lanes", "handle"), (IntImm(lanes),), index, "local")
        self._best = Buffer(Var("best_lanes", "handle"), (IntImm(lanes),), value, "local")
        self._place = Buffer(Var("place_lanes", "handle"), (IntImm(lanes),), index, "local")

    def run(self) -> Stmt:
        """Return the statements that replace the loop."""
        block = Var(f"{self._step.name}_0")
        num_blocks, remainder = divmod(self._extent, self._block)
        begin = BinOp("*", block, IntImm(self._block))
        stmts = [_over(self._lanes, self._start), For(block, IntImm(num_blocks), self._see(begin))]
        if remainder:
            stmts.append(self._see(IntImm(self._extent - self._block)))
        stmts += [_over(half, partial(self._fold, half)) for half in self._halves()]
        first, best = self._at(IntImm(0))
        stmts.append(self._locate(first, best))
        stmts += [_over(half, partial(self._fold_places, half)) for half in self._halves()]
        step = BinOp("+", first, Load(self._place, (IntImm(0),)))
        position = substitute(self._form.values[0], {self._step: step})
        reducer, targets = self._form.reducer, self._form.targets
        stmts.append(_assigned(targets, reducer(targets, (position, best))))
        result = seq(*stmts)
        for buffer in (self._first, self._best, self._place):
            result = Allocate(buffer, result)
        return result

    def _halves(self) -> list[int]:
        return [self._lanes >> n for n in range(1, self._lanes.bit_length())]

    def _value(self, *offsets: Expr) -> Expr:
        step = offsets[0]
        for offset in offsets[1:]:
            step = BinOp("+", step, offset)
        return substitute(self._form.values[1], {self._step: step})

    def _at(self, lane: Expr) -> tuple[Load, Load]:
        return Load(self._first, (lane,)), Load(self._best, (lane,))

    def _beats(self, a: Expr, b: Expr, *, or_equals: bool = False) -> Expr:
        """Compare two values; false if one of them is NaN."""
        if or_equals:
            return Compare(">=" if self._is_max else "<=", a, b)
        return Compare(">" if self._is_max else "<", a, b)

    def _start(self, lane: Expr) -> Stmt:
        # The step exists even if all values are infinite, so that its block can be read.
        return _assigned(self._at(lane), (IntImm(0, self._first.dtype), self._worst))

    def _see(self, begin: Expr) -> Stmt:
        """Compare the lanes with the block that begins at a step."""

        def compare(lane: Expr) -> Stmt:
            names = [Var(f"x{n}", self._best.dtype) for n in range(VECTORS_A_BLOCK)]
            extreme: Expr = names[0]
            for name in names[1:]:
                extreme = Select(self._beats(extreme, name), extreme, name)
            first, best = self._at(lane)
            seen = Var("seen", self._best.dtype)
            # Of equal values the first block stays: its steps are smaller.
            stays = self._beats(best, seen, or_equals=True)
            better = Select(self._beats(best, seen), best, seen)
            step = _cast(begin, self._first.dtype)
            stmt = _assigned((first, best), (Select(stays, first, step), better))
            stmt = Let(seen, extreme, stmt)
            for n, name in reversed(list(enumerate(names))):
                stmt = Let(name, self._value(begin, IntImm(n * self._lanes), lane), stmt)
            return stmt

        return _over(self._lanes, compare)

    def _fold(self, half: int, lane: Expr) -> Stmt:
        """Combine a lane with one of the upper half; of equal values, the smaller step counts."""
        lower, upper = self._at(lane), self._at(BinOp("+", lane, IntImm(half)))
        return _assigned(lower, self._form.reducer(lower, upper))

    def _locate(self, first: Expr, best: Expr) -> Stmt:
        """Find the first place of a value in the block that begins at a step, lane by lane.

        NaN counts as found, so that every block has such a place.
        """

        def locate(lane: Expr) -> Stmt:
            nearest: Expr = IntImm(self._block, self._place.dtype)
            for n in reversed(range(VECTORS_A_BLOCK)):
                offset = BinOp("+", lane, IntImm(n * self._lanes))
                value = self._value(first, offset)
                nearest = Select(
                    self._beats(best, value), nearest, _cast(offset, self._place.dtype)
                )
            return Store(self._place, (lane,), nearest)

        return _over(self._lanes, locate)

    def _fold_places(self, half: int, lane: Expr) -> Stmt:
        lower, upper = (Load(self._place, (i,)) for i in (lane, BinOp("+", lane, IntImm(half))))
        return Store(self._place, (lane,), BinOp("min", lower, upper))


def _cast(expr: Expr, dtype: DType) -> Expr:
    return expr if dtype == "int32" else Cast(dtype, expr)


def _assigned(targets: Sequence[Load], values: Sequence[Expr]) -> Stmt:
    """Store values to elements; all values are computed before the first store."""
    names = [Var(f"{t.buffer.name}_value", t.buffer.dtype) for t in targets]
    pairs = zip(targets, names, strict=True)
    stmt = seq(*(Store(t.buffer, t.indices, name) for t, name in pairs))
    for name, value in zip(reversed(names), reversed(values), strict=True):
        stmt = Let(name, value, stmt)
    return stmt


def _over(lanes: int, make: Callable[[Expr], Stmt]) -> Stmt:
    lane = Var("lane")
    return For(lane, IntImm(lanes), make(lane), "vectorized")
