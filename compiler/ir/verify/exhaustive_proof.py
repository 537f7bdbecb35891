"""Prove a claim about an index by evaluating it at every point of its variables.

Some facts are hard to derive by arithmetic, such as bounds of `x * 7 // 3 + r` if `r` depends on
the quotient. A few thousand points decide them. The verifier uses this last, for programs that it
would refuse otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.facts import Facts
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Cast,
    Compare,
    Conditional,
    Expr,
    IntImm,
    Logic,
    Not,
    Select,
    Var,
)
from compiler.ir.core.visit import walk

Values: TypeAlias = NDArray[Any]

# A chosen bound: an array of so many 64-bit values takes 512 KiB and stays in the cache.
MAX_POINTS = 1 << 16


class UnknownError(Exception):
    """An expression whose value the variables do not determine."""


def points_of(expr: Expr, facts: Facts) -> int | None:
    """Return the number of points that a claim about an expression has; None if unknown."""
    total = 1
    for var in _variables(expr):
        if var not in facts.ranges:
            return None
        low, high = facts.ranges[var]
        total *= max(high - low + 1, 1)
    return total


def is_never_negative(expr: Expr, facts: Facts) -> bool:
    """Return whether an expression is never negative under the facts, by trying all points."""
    variables = sorted(_variables(expr), key=lambda var: var.name)
    axes = [np.arange(low, high + 1) for low, high in (facts.ranges[v] for v in variables)]
    points = dict(zip(variables, np.meshgrid(*axes, indexing="ij", sparse=True), strict=True))
    try:
        fails = value_at(expr, points) < 0
        for form in facts.not_negative:
            if fails.any() and all(_variables(atom) <= points.keys() for atom, _ in form.terms):
                fails = fails & (_form_value(form, points) >= 0)
    except UnknownError:
        return False
    return not fails.any()


def _variables(expr: Expr) -> set[Var]:
    return {node for node in walk(expr) if isinstance(node, Var)}


def _form_value(form: Affine, points: Mapping[Var, Values]) -> Values:
    total = np.asarray(form.const)
    for atom, coefficient in form.terms:
        total = total + coefficient * value_at(atom, points)
    return total


def value_at(expr: Expr, points: Mapping[Var, Values]) -> Values:
    """Return the values of an expression at some points of its variables.

    Raises:
        UnknownError: If the variables do not determine it.
    """
    match expr:
        case IntImm(value):
            return np.asarray(value)
        case Var() if expr in points:
            return points[expr]
        case BinOp(op, lhs, rhs) if op in _ARITHMETIC and is_integer(dtype_of(lhs)):
            if op in ("//", "%") and not (isinstance(rhs, IntImm) and rhs.value > 0):
                raise UnknownError
            return np.asarray(_ARITHMETIC[op](value_at(lhs, points), value_at(rhs, points)))
        case Compare(op, lhs, rhs) if is_integer(dtype_of(lhs)):
            return np.asarray(_COMPARE[op](value_at(lhs, points), value_at(rhs, points)))
        case Logic(op, lhs, rhs):
            join = np.logical_and if op == "and" else np.logical_or
            return np.asarray(join(value_at(lhs, points), value_at(rhs, points)))
        case Not(value):
            return np.asarray(np.logical_not(value_at(value, points)))
        case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
            sides = value_at(then, points), value_at(otherwise, points)
            return np.where(value_at(condition, points), *sides)
        case Cast("int32" | "int64", value) if dtype_of(value) in ("int32", "int64"):
            return value_at(value, points)
        case _:
            raise UnknownError


_ARITHMETIC: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
_COMPARE: dict[str, Any] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
