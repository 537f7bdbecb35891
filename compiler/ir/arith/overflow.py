"""Find integer arithmetic that may leave its type: it would wrap around and pass for small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from compiler.ir.arith.bounds import Interval, combine, hull
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Cast, Conditional, Expr, IntImm, Load, Select, Var
from compiler.ir.core.visit import children

_LIMITS = {"int32": 2**31, "int64": 2**63}
_GROWING = ("+", "-", "*", "<<")
_CHECKED = frozenset(("+", "-", "*", "//", "%", "min", "max"))


class OverflowProblem(Exception):  # noqa: N818 (the verifier turns it into an error with a place)
    """A part of an expression may leave its type."""

    def __init__(self, part: Expr, interval: Interval) -> None:
        super().__init__(f"overflow of {dtype_of(part)}")
        self.part = part
        self.interval = interval


def check_overflow(expr: Expr, ranges: Mapping[Var, Interval]) -> Interval | None:
    """Return an interval that holds the values of an integer expression, if one is known.

    One pass over the tree: intervals are combined without looking for terms that cancel. Values
    that come out of buffers have no known interval, and their arithmetic may wrap around.

    Raises:
        OverflowProblem: If the interval of some part does not fit into its type.
    """
    if isinstance(expr, IntImm):
        return expr.value, expr.value
    if isinstance(expr, Var):
        return ranges.get(expr, expr.limits)
    parts = [check_overflow(child, ranges) for child in children(expr)]  # type: ignore[arg-type]
    match expr:
        case BinOp(op):
            interval = _of_both(partial(combine, op), parts[0], parts[1])
        case Select() | Conditional():
            interval = _of_both(hull, parts[1], parts[2])
        case Cast():
            interval = parts[0]
        case _:
            return None
    limit = _LIMITS.get(dtype_of(expr))
    if interval is None or limit is None:
        return None
    if not -limit <= interval[0] <= interval[1] < limit:
        raise OverflowProblem(expr, interval)
    return interval


def _of_both(
    operation: Callable[[Interval, Interval], Interval | None],
    a: Interval | None,
    b: Interval | None,
) -> Interval | None:
    """Apply an operation to two intervals, if both are known."""
    return None if a is None or b is None else operation(a, b)


@lru_cache(maxsize=4096)
def may_wrap(expr: Expr) -> bool:
    """Return whether arithmetic in an integer expression may leave its type unseen.

    It may where it is on values out of buffers, or in types that `check_overflow` does not check:
    there, the laws of whole numbers do not hold.
    """
    return _has_growth(expr) and not _is_checked(expr)


def _has_growth(expr: Expr) -> bool:
    if isinstance(expr, Load) or (isinstance(expr, Cast) and is_float(dtype_of(expr.value))):
        return False  # an index is no part of the value, and floats do not wrap around
    if isinstance(expr, BinOp) and expr.op in _GROWING:
        return True
    return any(_has_growth(child) for child in children(expr))  # type: ignore[arg-type]


def _is_checked(expr: Expr) -> bool:
    remaining = [expr]
    while remaining:
        part = remaining.pop()
        if isinstance(part, BinOp):
            if part.op not in _CHECKED:
                return False
            remaining += part.lhs, part.rhs
        elif isinstance(part, Select | Conditional):
            remaining += part.then, part.otherwise
        elif isinstance(part, Var | IntImm | Cast):
            if part.dtype not in _LIMITS:
                return False
            if isinstance(part, Cast):
                remaining.append(part.value)
        else:
            return False
    return True
