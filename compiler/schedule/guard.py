"""Predicates of blocks as bounds on sums of loops, and which iterations they leave out."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from compiler.ir.affine import Affine
from compiler.ir.bounds import affine_bounds
from compiler.ir.dtypes import is_integer
from compiler.ir.nodes import TRUE, Compare, Expr, IntImm, Logic, Var, dtype_of
from compiler.ir.simplify import normal
from compiler.schedule.access import Access
from compiler.schedule.digits import (
    UNKNOWN,
    Extents,
    Terms,
    extent_or_unknown,
    reach,
    terms_of,
    variables,
    variables_of,
)
from compiler.schedule.region import Span, span_of
from compiler.schedule.site import Site, conditions

_NOTHING: Extents = {}


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """Return the conditions that a predicate joins by `and`."""
    if predicate == TRUE:
        return ()
    if isinstance(predicate, Logic) and predicate.op == "and":
        return (*conjuncts(predicate.lhs), *conjuncts(predicate.rhs))
    return (predicate,)


def conjunction(conditions: tuple[Expr, ...]) -> Expr:
    """Join conditions by `and`."""
    total: Expr = TRUE
    for condition in conditions:
        total = condition if total == TRUE else Logic("and", total, condition)
    return total


def upper_bound(condition: Expr, extents: Extents) -> tuple[Terms, int] | None:
    """Read a condition as `terms < bound`, or return None if it is none of that kind."""
    if not isinstance(condition, Compare) or not is_integer(dtype_of(condition.lhs)):
        return None
    lhs, rhs = normal(condition.lhs, extents), normal(condition.rhs, extents)
    match condition.op:
        case "<":
            form, bound = lhs - rhs, 0
        case "<=":
            form, bound = lhs - rhs, 1
        case ">":
            form, bound = rhs - lhs, 0
        case ">=":
            form, bound = rhs - lhs, 1
        case _:
            return None
    return terms_of(form), bound - form.const


def is_implied(condition: Expr, by: tuple[Expr, ...], extents: Extents) -> bool:
    """Tell whether `x < b` follows from one of some conditions, by `c * x + rest < d`."""
    wanted = upper_bound(condition, extents)
    if wanted is None or not wanted[0]:
        return False
    terms, bound = dict(wanted[0]), wanted[1]
    for other in by:
        given = upper_bound(other, extents)
        if given is None:
            continue
        others = dict(given[0])
        atom, scale = next(iter(terms.items()))
        factor = others.get(atom, 0) // scale
        rest = tuple((a, c) for a, c in others.items() if a not in terms)
        least = affine_bounds(Affine(rest, 0), extents)
        matches = all(others.get(a) == factor * c for a, c in terms.items())
        if matches and factor > 0 and least and (given[1] - 1 - least[0]) // factor < bound:
            return True
    return False


def dense_spans(site: Site, fixed: AbstractSet[Var]) -> tuple[Span, ...] | None:
    """Return the span of each iterator while only the loops not `fixed` run, if all of it is run.

    That is: of the box of the spans, each point that lies in the iterators' own ranges is run.
    None if that can't be proved.
    """
    return _dense(site, site.values, [i.extent for i in site.block.iter_vars], fixed)


def dense_box(
    site: Site, access: Access, fixed: AbstractSet[Var], *, is_final: bool = True
) -> tuple[Span, ...] | None:
    """Return the box that an access touches while only the loops not `fixed` run, if all of it is.

    And, unless `is_final` is false, for each of its elements all of the reduction is run. Elements
    outside the buffer do not count. None if that can't be proved.
    """
    forms = list(site.indices(access))
    limits = list(access.buffer.shape)
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        if is_final and iter_var.kind != "spatial":
            forms.append(value)
            limits.append(iter_var.extent)
    spans = _dense(site, forms, limits, fixed, access.inner)
    rank = len(access.indices)
    if spans is None or not all(map(covers_range, spans[rank:], limits[rank:])):
        return None
    return spans[:rank]


def covers_range(span: Span, extent: Expr) -> bool:
    """Tell whether a span holds 0, ..., `extent` - 1, wherever the loops stand."""
    end = span.low.const + span.extent
    return not span.low.terms and span.low.const <= 0 and end >= extent_or_unknown(extent)


def _dense(
    site: Site,
    forms: Sequence[Affine],
    limits: Sequence[Expr],
    fixed: AbstractSet[Var],
    inner: Extents = _NOTHING,
) -> tuple[Span, ...] | None:
    """Return the spans of forms if they take all values in them that lie below the limits."""
    if conditions(site):
        return None
    extents = {**site.extents, **inner} if inner else site.extents
    guards: dict[Terms, int] = {}
    for condition in conjuncts(site.realize.predicate):
        bound = upper_bound(condition, extents)
        if bound is None:
            return None
        guards[bound[0]] = min(bound[1], guards.get(bound[0], bound[1]))

    spans: list[Span] = []
    parts: list[Affine] = []
    sizes: list[int] = []
    for form, limit in zip(forms, limits, strict=True):
        if _is_whole_loop(site, form, limit, fixed) and _is_alone(form, forms):
            spans.append(Span(Affine((), 0, form.dtype), UNKNOWN))
            continue
        moving = [(a, c) for a, c in form.terms if not variables(a) <= fixed]
        span = span_of(form, fixed, extents)
        if span is None or any(variables(a) & fixed for a, _ in moving):
            return None
        starts = affine_bounds(span.low, extents)
        is_cut = starts is not None and starts[0] >= 0
        size = min(span.extent, extent_or_unknown(limit)) if is_cut else span.extent
        spans.append(span)
        parts.append(Affine(tuple(moving), 0, form.dtype))
        sizes.append(size)

    used = reach(parts, sizes, extents, guards)
    if used is None:
        return None
    for guard in guards.items():
        if guard[0] not in used and not _is_harmless(guard, forms, limits, extents):
            return None
    return tuple(spans)


def _is_whole_loop(site: Site, form: Affine, limit: Expr, fixed: AbstractSet[Var]) -> bool:
    """Tell whether a form is just a moving loop whose extent, of unknown value, is the limit."""
    if form.const or isinstance(limit, IntImm) or len(form.terms) != 1:
        return False
    atom, scale = form.terms[0]
    return scale == 1 and any(
        loop.var is atom and loop.var not in fixed and loop.extent == limit for loop in site.loops
    )


def _is_alone(form: Affine, forms: Sequence[Affine]) -> bool:
    """Tell whether no other form shares a variable with a form."""
    own = variables_of(form)
    return sum(not own.isdisjoint(variables_of(other)) for other in forms) == 1


def _is_harmless(
    guard: tuple[Terms, int], forms: Sequence[Affine], limits: Sequence[Expr], extents: Extents
) -> bool:
    """Tell whether a guard only keeps forms below their limits."""
    terms, bound = guard
    interval = affine_bounds(Affine(tuple(terms), 0), extents)
    if interval is not None and interval[1] < bound:
        return True
    for form, limit in zip(forms, limits, strict=True):
        if not isinstance(limit, IntImm):
            continue
        if terms_of(form) == terms and bound >= limit.value - form.const:
            return True
        if terms_of(form.scaled(-1)) == terms and bound > form.const:
            return True
    return False
