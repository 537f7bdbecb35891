"""Literals and operands: a bare number takes the type of the other operand.

Operands of different types get a common type by the rules of TVM.
"""

from __future__ import annotations

import ast
import math
from typing import TypeAlias

import numpy as np

from compiler.ir.core.dtypes import DType, bits, is_float, wrapped
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import Broadcast, Expr, FloatImm, IntImm
from compiler.ir.core.promotion import common_type, converted, promoted
from compiler.script.context import Context

Parsed: TypeAlias = tuple[Expr, ast.expr]
"""An expression with the node that it was parsed from."""


def is_bare(node: ast.expr) -> bool:
    """Return whether a node is a number without a type, such as `0` or `-1.5`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def number(context: Context, value: float, dtype: DType, node: ast.expr) -> Expr:
    """Return a literal of a type.

    Raises:
        ScriptError: If the type can't hold the value.
    """
    if is_float(dtype):
        if not fits_float(value, dtype):
            raise context.error(
                f'the number does not fit into {dtype}: write T.{dtype}("inf") for infinity',
                node,
                code="limit",
            )
        return FloatImm(float(value), dtype)
    if not isinstance(value, int) and not value.is_integer():
        raise context.error(f"expected a value of type {dtype}, got {value}", node, code="type")
    fits = value in (0, 1) if dtype == "bool" else wrapped(int(value), dtype) == value
    if not fits:
        wider = ": write T.int64(...)" if dtype == "int32" and abs(value) < 2**63 else ""
        raise context.error(f"the number does not fit into {dtype}{wider}", node, code="limit")
    return IntImm(int(value), dtype)


def fits_float(value: float, dtype: DType) -> bool:
    """Return whether a number is finite in a floating-point type, after rounding."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.dtype(dtype).type(float(value))))
    except OverflowError:
        return False


def text_number(context: Context, value: str, dtype: DType, node: ast.expr) -> Expr:
    """Return the literal for `T.float32("inf")` and similar calls.

    Raises:
        ScriptError: If the text is not a floating-point value.
    """
    special = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    if is_float(dtype) and value in special:
        return FloatImm(special[value], dtype)
    raise context.error(
        f'expected "inf", "-inf" or "nan" for a floating-point type, got {value!r}',
        node,
        code="type",
    )


def adapt(context: Context, expr: Expr, node: ast.expr, dtype: DType) -> Expr:
    """Convert a bare number to the required type; other expressions stay.

    Raises:
        ScriptError: If the type can't hold the number.
    """
    if is_bare(node) and dtype_of(expr) != dtype:
        assert isinstance(expr, IntImm | FloatImm)
        return number(context, expr.value, dtype, node)
    return expr


def match_types(context: Context, lhs: Parsed, rhs: Parsed, origin: ast.AST) -> tuple[Expr, Expr]:
    """Return two operands of one type.

    A bare number takes the type of the other operand, and the narrower operand is widened.

    Raises:
        ScriptError: If a type can't hold a number, or there is no common type.
    """
    a, b = lhs[0], rhs[0]
    if dtype_of(a) != dtype_of(b):
        # In `i + 1.5` the number keeps its type, because the result is not an integer.
        if not _is_float_beside_integer(a, b):
            a = adapt(context, a, lhs[1], dtype_of(b))
        if not _is_float_beside_integer(b, a):
            b = adapt(context, b, rhs[1], dtype_of(a))
        a, b = promoted(a, b)
    if dtype_of(a) != dtype_of(b):
        raise context.error(
            f"expected operands of one type, got {dtype_of(a)} and {dtype_of(b)}: "
            f'convert with T.Cast("{dtype_of(a)}", ...)',
            origin,
            code="type",
        )
    return same_lanes(context, a, b, origin) if context.has_vectors else (a, b)


def same_lanes(context: Context, a: Expr, b: Expr, origin: ast.AST) -> tuple[Expr, Expr]:
    """Return two operands with the same number of lanes: a scalar beside a vector is repeated.

    Raises:
        ScriptError: If they are vectors of different lengths.
    """
    left, right = lanes_of(a), lanes_of(b)
    if left == right:
        return a, b
    if left == 1:
        return Broadcast(a, right), b
    if right == 1:
        return a, Broadcast(b, left)
    raise context.error(f"vectors of {left} and {right} lanes", origin, code="type")


def stored(context: Context, name: str, dtype: DType, computed: Expr, value: ast.expr) -> Expr:
    """Return a value converted to the type of its destination.

    Raises:
        ScriptError: If the conversion would lose information.
    """
    adapted = adapt(context, computed, value, dtype)
    if dtype_of(adapted) != dtype and widens(dtype_of(adapted), dtype):
        adapted = converted(adapted, dtype)
    if dtype_of(adapted) != dtype:
        raise context.error(
            f'{name} holds {dtype}, got {dtype_of(adapted)}: convert with T.Cast("{dtype}", ...)',
            value,
            code="type",
        )
    return adapted


def widens(source: DType, to: DType) -> bool:
    """Return whether a store converts implicitly: to a wider type, or an integer to a float."""
    if source == "bool" or (is_float(to) and not is_float(source)):
        return True
    return common_type(source, to) == to and bits(source) < bits(to)


def _is_float_beside_integer(number: Expr, other: Expr) -> bool:
    return isinstance(number, FloatImm) and not is_float(dtype_of(other))
