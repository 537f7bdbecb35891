"""Results of index maps that number several indices in row-major order, with symbolic extents.

`lambda y, w: y * n + w`, for a `w` of extent `n`, is such a number. Other code reads an index as a
sum of variables times integers, which this is not. So the number becomes one variable here, and the
indices become its digits:

    y, w -> y * n + w      is      f -> f,  with y = f // n % 32 and w = f % n
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.index.index_map import IndexMap

_Polynomial: TypeAlias = dict[tuple[Var, ...], int]


@dataclass(frozen=True)
class Renumbered:
    """A map whose row-major numbers are variables: its sizes, and the old indices from the new."""

    index_map: IndexMap
    sizes: tuple[Expr, ...]
    digits: Mapping[Var, Expr]


def renumbered(index_map: IndexMap, sizes: Sequence[Expr]) -> Renumbered | None:
    """Return a map with variables for its row-major numbers; None if it has none."""
    extents = dict(zip(index_map.params, sizes, strict=True))
    digits: dict[Var, Expr] = {}
    numbers: dict[Var, Expr] = {}
    results: list[Expr] = []
    for number_of_result, result in enumerate(index_map.results):
        parts = numbered(result, extents)
        if parts is None or not digits.keys().isdisjoint(parts):
            results.append(result)
            continue
        number = Var(f"axis{number_of_result}", dtype_of(result))
        size: Expr = IntImm(1, dtype_of(result))
        for part in reversed(parts):
            digits[part] = _digit(number, size, extents[part], is_first=part is parts[0])
            size = simplify(BinOp("*", extents[part], size))
        numbers[number] = size
        results.append(number)
    # An index that is a digit of one number may be used by no other result.
    is_mixed = any(node in digits for result in results for node in walk(result))
    if not numbers or is_mixed:
        return None
    rest = [param for param in index_map.params if param not in digits]
    params = (*rest, *numbers)
    return Renumbered(
        IndexMap(params, tuple(results)),
        (*(extents[param] for param in rest), *numbers.values()),
        digits,
    )


def numbered(result: Expr, extents: Mapping[Var, Expr]) -> list[Var] | None:
    """Return the indices that a result numbers with symbolic strides, the slowest first.

    Args:
        extents: The extents of the indices. Variables without one are symbolic sizes.
    """
    if all(isinstance(size, IntImm) for size in extents.values()):
        return None
    unit: dict[Var, Expr] = {
        p: IntImm(0, dtype_of(p)) for p, size in extents.items() if _is_one(size)
    }
    value = substitute(result, unit)
    used = {node for node in walk(value) if isinstance(node, Var)}
    parts = [param for param in extents if param in used]
    if len(parts) < 2 or used == set(parts):
        return None
    expected: Expr = IntImm(0, dtype_of(result))
    stride: Expr = IntImm(1, dtype_of(result))
    for part in reversed(parts):
        expected = BinOp("+", BinOp("*", part, stride), expected)
        stride = BinOp("*", stride, extents[part])
    polynomial = _polynomial(value)
    return parts if polynomial is not None and polynomial == _polynomial(expected) else None


def _digit(number: Var, stride: Expr, size: Expr, *, is_first: bool) -> Expr:
    value: Expr = number if _is_one(stride) else BinOp("//", number, stride)
    return value if is_first else BinOp("%", value, size)


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 1


def _polynomial(expr: Expr) -> _Polynomial | None:
    """Return the coefficients of products of variables; None for what is no polynomial."""
    match expr:
        case IntImm(value):
            return {(): value} if value else {}
        case Var():
            return {(expr,): 1}
        case BinOp("+" | "-" | "*" as op, lhs, rhs):
            left, right = _polynomial(lhs), _polynomial(rhs)
            if left is None or right is None:
                return None
            return _multiplied(left, right) if op == "*" else _added(left, right, op)
        case _:
            return None


def _added(lhs: _Polynomial, rhs: _Polynomial, op: str) -> _Polynomial:
    sign = 1 if op == "+" else -1
    total = {key: lhs.get(key, 0) + sign * rhs.get(key, 0) for key in (*lhs, *rhs)}
    return {key: value for key, value in total.items() if value}


def _multiplied(lhs: _Polynomial, rhs: _Polynomial) -> _Polynomial:
    total: _Polynomial = {}
    for one, a in lhs.items():
        for other, b in rhs.items():
            key = tuple(sorted((*one, *other), key=id))
            total[key] = total.get(key, 0) + a * b
    return {key: value for key, value in total.items() if value}
