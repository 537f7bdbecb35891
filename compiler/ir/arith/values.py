"""Values of integer expressions at many points of their variables, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.affine import Affine
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

Values: TypeAlias = NDArray[Any]


class UnknownError(Exception):
    """An expression whose value the variables do not determine."""


def grid(axes: Mapping[Var, Values]) -> dict[Var, Values]:
    """Return the values of variables as arrays over all points, which broadcast to one shape."""
    return dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij", sparse=True), strict=True))


def form_value(form: Affine, points: Mapping[Var, Values]) -> Values:
    """Return the values of a linear form at some points of its variables.

    Raises:
        UnknownError: If the variables do not determine it.
    """
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
            if not _is_defined(op, rhs):
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


def _is_defined(op: str, rhs: Expr) -> bool:
    """Return whether NumPy computes an operation as programs do, whatever the left operand."""
    if op in ("//", "%"):
        return isinstance(rhs, IntImm) and rhs.value > 0
    return op != ">>" or (isinstance(rhs, IntImm) and 0 <= rhs.value < 32)


# Without `<<`, whose overflow is not always noticed (`may_wrap`): its value in 64 bits may differ.
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
    ">>": np.right_shift,
}


_COMPARE: dict[str, Any] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
