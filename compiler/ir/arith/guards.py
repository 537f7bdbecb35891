"""Conditions as upper bounds on sums of iterators."""

from __future__ import annotations

from compiler.ir.arith.iter_map import Extents, Terms, terms_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, Compare, Expr, Logic


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """Return the conditions that a predicate joins by `and`."""
    if predicate == TRUE:
        return ()
    if isinstance(predicate, Logic) and predicate.op == "and":
        return (*conjuncts(predicate.lhs), *conjuncts(predicate.rhs))
    return (predicate,)


def upper_bound(condition: Expr, extents: Extents) -> tuple[Terms, int] | None:
    """Read a condition as `terms < bound`; return None if it has another form."""
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


def bounds_of(conditions: tuple[Expr, ...], extents: Extents) -> dict[Terms, int]:
    """Return the upper bounds that conditions set on sums of loops; ignore other conditions."""
    upper_bounds: dict[Terms, int] = {}
    for condition in conditions:
        bound = upper_bound(condition, extents)
        if bound is not None:
            upper_bounds[bound[0]] = min(bound[1], upper_bounds.get(bound[0], bound[1]))
    return upper_bounds
