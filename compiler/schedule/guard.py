"""Predicates of blocks as bounds on sums of loops, and which iterations they leave out."""

from __future__ import annotations

from compiler.ir.affine import Affine
from compiler.ir.bounds import affine_bounds
from compiler.ir.dtypes import is_integer
from compiler.ir.nodes import TRUE, Compare, Expr, IntImm, Logic, Var, dtype_of
from compiler.ir.simplify import normal
from compiler.schedule.digits import Extents, Source, Terms, reach, terms_of, variables
from compiler.schedule.region import Span, span_of
from compiler.schedule.site import Site, conditions


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


def dense_spans(site: Site, fixed: set[Var]) -> tuple[Span, ...] | None:
    """Return the span of each iterator while only the loops not `fixed` run, if all of it is run.

    That is: of the box of the spans, each point that lies in the iterators' own ranges is run.
    None if that can't be proved.
    """
    if conditions(site):
        return None
    extents = site.extents
    bounds = [upper_bound(c, extents) for c in conjuncts(site.realize.predicate)]
    guards: dict[Terms, int] = {}
    for bound in bounds:
        if bound is None:
            return None
        guards[bound[0]] = min(bound[1], guards.get(bound[0], bound[1]))

    spans: list[Span] = []
    forms: list[Affine] = []
    sizes: list[int] = []
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        moving = [(a, c) for a, c in value.terms if not variables(a) <= fixed]
        span = span_of(value, fixed, extents)
        mixed = any(variables(a) & fixed for a, _ in moving)
        if span is None or mixed or not isinstance(iter_var.extent, IntImm):
            return None
        starts = affine_bounds(span.low, extents)
        is_cut = starts is not None and starts[0] >= 0
        spans.append(span)
        forms.append(Affine(tuple(moving), 0, value.dtype))
        sizes.append(min(span.extent, iter_var.extent.value) if is_cut else span.extent)

    used = reach(forms, sizes, extents, guards)
    if used is None or not all(_is_harmless(site, guard, used) for guard in guards.items()):
        return None
    return tuple(spans)


def _is_harmless(site: Site, guard: tuple[Terms, int], used: frozenset[Source]) -> bool:
    """Tell whether a guard only keeps iterators in their ranges, or was heeded by `reach`."""
    terms, bound = guard
    if terms in used:
        return True
    interval = affine_bounds(Affine(tuple(terms), 0), site.extents)
    if interval is not None and interval[1] < bound:
        return True
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        size = iter_var.extent
        if not isinstance(size, IntImm):
            continue
        if terms_of(value) == terms and bound >= size.value - value.const:
            return True
        if terms_of(value.scaled(-1)) == terms and bound > value.const:
            return True
    return False
