"""Join what starts a reduction with the statement that goes on with it.

for i in range(n):               for i in range(n):           the start of a sum may be in
    Y[i] = 0                         for k in range(m):       loops of its own, or in the
    for k in range(m):                   if k == 0:           first iteration of its loops
        Y[i] = Y[i] + A[i, k]                Y[i] = 0
                                         Y[i] = Y[i] + A[i, k]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import normal, prove, simplify
from compiler.ir.arith.values import UnknownError, Values, grid, value_at
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Compare, Expr, For, IntImm, Load, Store, Var, seq
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.rewrite.plain_loops.iterators import is_repeated, reads, reduction_loops
from compiler.schedule.rewrite.plain_loops.statements import LoopBody, Part, Statement

# A limit on the iterations that are tried, where the form of a condition shows nothing. Chosen.
_MOST_POINTS = 1 << 16


def join_inits(parts: Sequence[Part]) -> list[Part]:
    """Join each reduction with the statements directly before it that start it."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, LoopBody):
            joined.append(replace(part, parts=tuple(join_inits(part.parts))))
        else:
            joined = _joined(joined, part)
    return joined


def _joined(before: list[Part], statement: Statement) -> list[Part]:
    """Return parts with one more statement, which takes over its start if that is there."""
    reduction = reduction_loops(statement)
    reduced = [loop for loop in reduction if is_repeated(loop)]
    elements = {Load(store.buffer, store.indices) for store in statement.stores}
    starts: list[Store] = []
    number = len(before)
    while number and reduction and elements:
        start = _start(before[number - 1], statement, reduced)
        if start is None or Load(start.buffer, start.indices) not in elements:
            break
        elements.remove(Load(start.buffer, start.indices))
        starts.insert(0, start)
        number -= 1
    if not starts or elements or statement.init is not None:
        return [*before, statement]
    return [*before[:number], replace(statement, init=seq(*starts))]


def _start(part: Part, statement: Statement, reduced: Sequence[For]) -> Store | None:
    """Return a store, in terms of the loops of a reduction, if a part is that store alone.

    It must run exactly before, or in, the first iteration of the reduction of each element.
    """
    if not isinstance(part, Statement) or not isinstance(part.body, Store) or part.init is not None:
        return None
    if part.loops == statement.loops:
        store = _in_first_iteration(part, statement, reduced)
    else:
        store = _before_loops(part, statement, reduced)
    if store is None or any(reads(value, b) for value in (store.value,) for b in statement.written):
        return None
    return store


def _in_first_iteration(
    part: Statement, statement: Statement, reduced: Sequence[For]
) -> Store | None:
    """Return the store of a statement that runs where all reduction loops are at their start."""
    remaining = list(statement.conditions)
    starting: list[Expr] = []
    for condition in part.conditions:
        if condition in remaining:
            remaining.remove(condition)
        else:
            starting.append(condition)
    # Otherwise another iteration would start it again, or none would.
    if remaining or not _is_start(starting, statement, reduced):
        return None
    assert isinstance(part.body, Store), "the part is a store"
    return _at_zero(part.body, reduction_loops(statement))


def _before_loops(part: Statement, statement: Statement, reduced: Sequence[For]) -> Store | None:
    """Return the store of a statement in the other loops of a reduction, in terms of these."""
    reduction = reduction_loops(statement)
    spatial = [loop for loop in statement.loops if loop not in reduction]
    if len(part.loops) != len(spatial):
        return None
    pairs = list(zip(part.loops, spatial, strict=True))
    mapping: dict[Var, Expr] = {old.var: new.var for old, new in pairs}
    if any(substitute(old.extent, mapping) != new.extent for old, new in pairs):
        return None
    # A loop around both is one for the start and the reduction alike.
    around = {loop.var for loop in statement.loops}
    if any(old.var is not new.var for old, new in pairs if old.var in around):
        return None
    # The reduction of each element that is started has a first iteration.
    extents = {loop.var: extent_or_unknown(loop.extent) for loop in statement.loops}
    if not all(_has_iterations(loop, extents) for loop in reduction):
        return None
    first = _zeros(reduction)
    required = [
        condition
        for condition in (substitute(c, first) for c in statement.conditions)
        if not prove(condition, extents)
    ]
    if [substitute(c, mapping) for c in part.conditions] != required:
        return None
    moved = substitute(part.body, mapping)
    assert isinstance(moved, Store), "the part is a store"
    return moved


def _has_iterations(loop: For, extents: Mapping[Var, int]) -> bool:
    """Return whether a loop runs at all; extents that are parameters are positive."""
    is_parameter = isinstance(loop.extent, Var) and loop.extent not in extents
    one = IntImm(1, dtype_of(loop.extent))
    return is_parameter or prove(Compare(">=", loop.extent, one), extents)


def _is_start(conditions: Sequence[Expr], statement: Statement, reduced: Sequence[For]) -> bool:
    """Return whether conditions hold in the first iteration of some loops, and only there."""
    zeros = [_zeros_where(condition, statement) for condition in conditions]
    if all(zero is not None for zero in zeros):
        at_start = {var for zero in zeros for var in zero or ()}
        return at_start == {loop.var for loop in reduced}
    used = {n for c in (*conditions, *statement.conditions) for n in walk(c) if isinstance(n, Var)}
    loops = [loop for loop in statement.loops if loop.var in used or loop in reduced]
    sizes = [extent_or_unknown(loop.extent) for loop in loops]
    if prod(sizes) > _MOST_POINTS:
        return False
    points = grid({lp.var: np.arange(size) for lp, size in zip(loops, sizes, strict=True)})
    try:
        runs, starts = (
            [value_at(c, points) for c in each] for each in (statement.conditions, conditions)
        )
    except UnknownError:
        return False
    firsts = [points[loop.var] == 0 for loop in reduced]
    return not np.any(_all(runs) & (_all(starts) != _all(firsts)))


def _all(conditions: Sequence[Values]) -> Values:
    total: Values = np.asarray(True)
    for condition in conditions:
        total = total & (condition != 0)
    return total


def _zeros_where(condition: Expr, statement: Statement) -> set[Var] | None:
    """Return the loops that are all zero where a condition holds, and only there."""
    if not (isinstance(condition, Compare) and condition.op == "=="):
        return None
    extents = {loop.var: extent_or_unknown(loop.extent) for loop in statement.loops}
    form = normal(condition.lhs, extents) - normal(condition.rhs, extents)
    scales = {atom: scale for atom, scale in form.terms if isinstance(atom, Var)}
    loops = {loop.var for loop in statement.loops}
    is_sum = len(scales) == len(form.terms) and scales.keys() <= loops
    signs = {scale > 0 for scale in scales.values()}
    if not is_sum or form.const or len(signs) > 1:
        return None
    return {loop.var for loop in statement.loops if loop.var in scales and is_repeated(loop)}


def _at_zero(store: Store, loops: Sequence[For]) -> Store:
    """Return a store in the first iteration of some loops."""
    zeros = _zeros(loops)
    if not any(node in zeros for node in walk(store) if isinstance(node, Var)):
        return store
    return Store(
        store.buffer,
        tuple(simplify(substitute(index, zeros)) for index in store.indices),
        substitute(store.value, zeros),
    )


def _zeros(loops: Sequence[For]) -> dict[Var, Expr]:
    return {loop.var: IntImm(0, dtype_of(loop.var)) for loop in loops}
