"""Conditions that keep a new value of an iterator in its range, as simple as possible.

The opposite direction, from a predicate to bounds, is `compiler.schedule.legality.guard`.

Example: a block with an iterator from 0 to n - 1 is computed under a loop `i_0` of 4 iterations, 32
values in each: the loop `ax0` below it runs over them, and the value is `i_0 * 32 + ax0`.

    n = 128   no condition: the values run from 0 to 127
    n = 100   i_0 * 32 + ax0 < 100
    n = 96    i_0 < 3: all of the 32 values are below 96, or none is

If the value is `i_0 * 32 + ax0 - 1`, it may be -1 too, which `1 <= i_0 * 32 + ax0` excludes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.iter_map import Extents
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import BinOp, Compare, Expr, For, IntImm, Var
from compiler.schedule.index.region import Span


def guards_of(
    value: Affine, span: Span, size: Expr, extents: Extents, loops: Sequence[For]
) -> list[Expr]:
    """Return the conditions that keep a value in 0, ..., `size` - 1, except those that are proved.

    Args:
        value: The value, in terms of the loops around it and of its own loops.
        span: The span of the value.
        extents: The extents of the variables in it.
        loops: The loops around it.
    """
    guards: list[Expr] = []
    low = affine_bounds(span.low, extents)
    if low is None or low[0] < 0:
        form = Affine(value.terms, 0, value.dtype)
        guards.append(Compare("<=", IntImm(-value.const, value.dtype), form.to_expr()))
    domains = {loop.var: loop.extent for loop in loops}
    if span.extent >= UNKNOWN or stays_below(span, size, domains):
        return guards
    if not isinstance(size, IntImm):
        return [*guards, Compare("<", value.to_expr(), size)]
    interval = affine_bounds(span.low, extents)
    if interval is None or interval[1] + span.extent > size.value:
        form, bound = simplest_bound(value, size.value, extents)
        guards.append(Compare("<", form.to_expr(), IntImm(bound, value.dtype)))
    return guards


def stays_below(span: Span, size: Expr, domains: Mapping[Var, Expr]) -> bool:
    """Return whether a span lies below a size, both perhaps symbolic.

    Args:
        domains: The extents of the variables in the span.
    """
    most = Affine((), span.low.const + span.extent, span.low.dtype)
    for atom, scale in span.low.terms:
        extent = domains.get(atom) if isinstance(atom, Var) else None
        if extent is None or scale < 0:
            return False
        most += (normal(extent) + Affine((), -1, span.low.dtype)).scaled(scale)
    difference = normal(size) - most
    return not difference.terms and difference.const >= 0


def simplest_bound(form: Affine, bound: int, extents: Extents) -> tuple[Affine, int]:
    """Return `terms` and a number whose comparison has the same outcome as `form < bound`."""
    moving = tuple(
        (a, c) for a, c in form.terms if not (isinstance(a, Var) and extents.get(a) == 1)
    )
    if moving:
        form = Affine(moving, form.const, form.dtype)
    match form.terms:
        case ((BinOp("//", inner, IntImm(divisor)), 1),) if divisor > 0:
            # x // c < b just where x < b * c.
            return simplest_bound(normal(inner, extents), (bound - form.const) * divisor, extents)
        case _:
            pass
    for step in sorted({abs(c) for _, c in form.terms}, reverse=True):
        coarser = _without_fine(form, bound, step, extents) if step > 1 else None
        if coarser is not None:
            return simplest_bound(*coarser, extents)
    return Affine(form.terms, 0, form.dtype), bound - form.const


def _without_fine(
    form: Affine, bound: int, step: int, extents: Extents
) -> tuple[Affine, int] | None:
    """Drop terms that are too small to matter: if j < 8, then i * 8 + j < 32 exactly if i < 4."""
    coarse = tuple((a, c // step) for a, c in form.terms if c % step == 0)
    fine = Affine(tuple((a, c) for a, c in form.terms if c % step), form.const % step, form.dtype)
    interval = affine_bounds(fine, extents)
    if not coarse or interval is None or interval[0] < 0 or interval[1] >= step:
        return None
    if fine.terms and bound % step:
        return None
    limit = bound // step if fine.terms else math.ceil((bound - fine.const) / step)
    return Affine(coarse, form.const // step, form.dtype), limit
