"""Interval analysis of integer expressions: which values they may take.

Each term of a sum is bounded separately. `compiler.ir.arith.facts` uses bounds on sums, too, out of
conditions. `compiler.ir.arith.bijectivity` proves that indices reach all of an interval.

Example, with `i` below 4 and `j` below 8:

    i * 8 + j        lies in 0, ..., 31
    (i * 8 + j) % 6  lies in 0, ..., 5
    i - i            lies in 0, ..., 0: terms that cancel are dropped first
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from types import MappingProxyType
from typing import TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.core.dtypes import DType, bits, is_integer, is_signed, wrapped
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Cast,
    Conditional,
    Expr,
    IntImm,
    Ramp,
    Select,
    Var,
)

Interval: TypeAlias = tuple[int, int]
"""Both ends included."""

Ranges: TypeAlias = Mapping[Var, int | Interval]
"""Ranges of variables: an extent `n` (so 0 to n - 1), or an interval."""


class FixedRanges(dict[Var, int | Interval]):
    """Ranges under which many expressions are simplified: what is found of their parts is kept.

    The index of an element occurs again in its guards, and in other accesses.

    Attributes:
        forms: The linear forms of parts that are no sums.
        intervals: The intervals of such parts.
    """

    def __init__(self, ranges: Ranges = MappingProxyType({})) -> None:
        super().__init__(ranges)
        self.forms: dict[Expr, Affine] = {}
        self.intervals: dict[Expr, Interval | None] = {}

    def __setitem__(self, var: Var, values: int | Interval) -> None:
        """Set the range of a variable; another one than before invalidates what was kept."""
        if self.get(var, values) != values:
            self.forms.clear()
            self.intervals.clear()
        super().__setitem__(var, values)


def shared_ranges(extents: Mapping[Var, int]) -> FixedRanges:
    """Return the ranges of loops, one table for all accesses in them: they share parts of indices.

    The table must not be changed.
    """
    # Without loops, programs would have one table in common, which would grow.
    return _table_of(frozenset(extents.items())) if extents else FixedRanges()


@lru_cache(maxsize=64)
def _table_of(extents: frozenset[tuple[Var, int]]) -> FixedRanges:
    return FixedRanges(dict(extents))


def bounds(expr: Expr, ranges: Ranges) -> Interval | None:
    """Return an interval that holds every value of `expr`, or None if a variable is unknown.

    A variable without a range has the limits of its symbol, if any. The interval is exact for sums
    of different variables; elsewhere it may be wider.
    """
    if isinstance(expr, IntImm):
        return expr.value, expr.value
    return affine_bounds(affine(expr), ranges)


def affine_bounds(form: Affine, ranges: Ranges) -> Interval | None:
    """Return an interval that holds every value of a linear form."""
    low = high = form.const
    for atom, coefficient in form.terms:
        interval = _atom(atom, ranges)
        if interval is None:
            return None
        ends = (interval[0] * coefficient, interval[1] * coefficient)
        low, high = low + min(ends), high + max(ends)
    return low, high


def conditional_bounds(
    form: Affine, ranges: Ranges, not_negative: Sequence[Affine]
) -> Interval | None:
    """Return an interval that holds the values of a form while other forms are not negative.

    Example, with `i` and `j` below 2, and `2 - 2 * i - j` not negative:

        4 * i + 2 * j  lies in 0, ..., 4: it is at most itself and twice the condition
    """
    interval = affine_bounds(form, ranges)
    if interval is None or not not_negative:
        return interval
    low = -_greatest(form.scaled(-1), ranges, not_negative)
    return low, _greatest(form, ranges, not_negative)


def _greatest(form: Affine, ranges: Ranges, not_negative: Sequence[Affine]) -> int:
    """Return an upper bound of a form: add each condition to it that makes the bound less."""
    for condition in not_negative:
        sums = [form + multiple for multiple in condition.multiples(form.scaled(-1))]
        form = min((form, *sums), key=lambda total: _upper(total, ranges))
    return int(_upper(form, ranges))


def _upper(form: Affine, ranges: Ranges) -> float:
    interval = affine_bounds(form, ranges)
    return inf if interval is None else interval[1]


def _atom(atom: Expr, ranges: Ranges) -> Interval | None:
    match atom:
        case Var():
            limits = ranges.get(atom, atom.limits)
            return (0, limits - 1) if isinstance(limits, int) else limits
        case BinOp():
            if not isinstance(ranges, FixedRanges):
                return _of_operation(atom, ranges)
            if atom not in ranges.intervals:
                ranges.intervals[atom] = _of_operation(atom, ranges)
            return ranges.intervals[atom]
        case Select() | Conditional():
            a, b = bounds(atom.then, ranges), bounds(atom.otherwise, ranges)
            return None if a is None or b is None else hull(a, b)
        case Cast(dtype, IntImm(value)) if is_integer(dtype):
            literal = wrapped(value, dtype)
            return literal, literal
        case _:
            return None


def _of_operation(expr: BinOp, ranges: Ranges) -> Interval | None:
    op, rhs = expr.op, expr.rhs
    a, b = bounds(expr.lhs, ranges), bounds(rhs, ranges)
    if a is None and op == "%" and isinstance(rhs, IntImm) and rhs.value > 0:
        return 0, rhs.value - 1
    if a is None or b is None:
        return None
    interval = combine(op, a, b)
    if interval is not None and op in ("min", "max"):
        return _around_the_mean(op, interval, affine_bounds(affine(expr.lhs) + affine(rhs), ranges))
    return interval


def _around_the_mean(op: str, interval: Interval, total: Interval | None) -> Interval:
    """Return the interval of a minimum or maximum, given that of the sum of its operands.

    A minimum is at most half of the sum: that of `i` and `8 - i` is at most 4.
    """
    low, high = interval
    if total is None:
        return interval
    return (low, min(high, total[1] // 2)) if op == "min" else (max(low, -(-total[0] // 2)), high)


def combine(op: str, a: Interval, b: Interval) -> Interval | None:
    """Return an interval that holds the results of an operation on two intervals, if one is known.

    Arithmetic is that of whole numbers; divisions round down.
    """
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case "//" if b[0] > 0:
            quotients = [x // y for x in a for y in b]
            return min(quotients), max(quotients)
        case "%" if b[0] == b[1] > 0 and a[0] // b[0] == a[1] // b[0]:
            return a[0] % b[0], a[1] % b[0]
        case "%" if b[0] > 0:
            return 0, b[1] - 1
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "<<" if 0 <= b[0] <= b[1] < 64:
            shifted = [x << y for x in a for y in b]
            return min(shifted), max(shifted)
        case _:
            return None


def hull(a: Interval, b: Interval) -> Interval:
    """Return the smallest interval that holds two."""
    return min(a[0], b[0]), max(a[1], b[1])


def reach(expr: Expr, ranges: Ranges) -> Interval:
    """Return an interval that holds the values of an integer expression, whatever it is made of.

    Of what comes out of buffers and functions only the type is known. Arithmetic that leaves its
    type wraps around, and then nothing more is known of the result than its type, either.
    """
    dtype = dtype_of(expr)
    limits = limits_of(dtype)
    match expr:
        case IntImm(value):
            return value, value
        case Var():
            interval = bounds(expr, ranges)
        case BinOp(op, lhs, rhs) if is_integer(dtype):
            interval = combine(op, reach(lhs, ranges), reach(rhs, ranges))
        case Select(_, then, otherwise) | Conditional(_, then, otherwise):
            interval = hull(reach(then, ranges), reach(otherwise, ranges))
        case Broadcast(value, _):
            interval = reach(value, ranges)
        case Ramp(base, stride, lanes):
            low, high = reach(base, ranges)
            last = stride * (lanes - 1)
            interval = low + min(last, 0), high + max(last, 0)
        case Cast(_, value) if is_integer(dtype_of(value)) or dtype_of(value) == "bool":
            interval = reach(value, ranges)
        case _:
            interval = None
    if interval is None or interval[0] < limits[0] or interval[1] > limits[1]:
        return limits
    return interval


def limits_of(dtype: DType) -> Interval:
    """Return the least and the greatest value of an integer type."""
    if dtype == "bool":
        return 0, 1
    size = 1 << bits(dtype)
    low = -size // 2 if is_signed(dtype) else 0
    return low, low + size - 1
