"""Literals and operands: a bare number takes the type of what stands beside it."""

from __future__ import annotations

import ast
import math
from typing import TypeAlias

import numpy as np

from compiler.ir.dtypes import DType, is_float
from compiler.ir.nodes import Expr, FloatImm, IntImm, dtype_of
from compiler.script.context import Context

Parsed: TypeAlias = tuple[Expr, ast.expr]
"""An expression with the node that it was parsed from."""


def is_bare(node: ast.expr) -> bool:
    """Tell whether a node is a number without a type, such as `0` or `-1.5`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def number(context: Context, value: float, dtype: DType, node: ast.expr) -> Expr:
    """Return a literal of a type.

    Raises:
        ScriptError: If the value is none of that type.
    """
    if is_float(dtype):
        if not fits_float(value, dtype):
            raise context.error(
                f'the number does not fit into {dtype}: write T.{dtype}("inf") for infinity', node
            )
        return FloatImm(float(value), dtype)
    if not isinstance(value, int) and not value.is_integer():
        raise context.error(f"expected a value of type {dtype}, got {value}", node)
    limits = np.iinfo("uint8" if dtype == "bool" else dtype)
    if not limits.min <= value <= (1 if dtype == "bool" else limits.max):
        wider = ": write T.int64(...)" if dtype == "int32" and abs(value) < 2**63 else ""
        raise context.error(f"the number does not fit into {dtype}{wider}", node)
    return IntImm(int(value), dtype)


def fits_float(value: float, dtype: DType) -> bool:
    """Tell whether a number is finite in a floating-point type, after rounding."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.dtype(dtype).type(float(value))))
    except OverflowError:
        return False


def text_number(context: Context, value: str, dtype: DType, node: ast.expr) -> Expr:
    """Return the literal that `T.float32("inf")` and the like stand for.

    Raises:
        ScriptError: If the text is no floating-point value.
    """
    special = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    if is_float(dtype) and value in special:
        return FloatImm(special[value], dtype)
    raise context.error(
        f'expected "inf", "-inf" or "nan" for a floating-point type, got {value!r}', node
    )


def adapt(context: Context, expr: Expr, node: ast.expr, dtype: DType) -> Expr:
    """Give a bare number the type that its place asks for; leave other expressions alone.

    Raises:
        ScriptError: If the number is none of that type.
    """
    if is_bare(node) and dtype_of(expr) != dtype:
        assert isinstance(expr, IntImm | FloatImm)
        return number(context, expr.value, dtype, node)
    return expr


def match_types(context: Context, lhs: Parsed, rhs: Parsed, place: ast.AST) -> tuple[Expr, Expr]:
    """Return two operands of one type.

    Raises:
        ScriptError: If their types differ and neither is a bare number.
    """
    a, b = lhs[0], rhs[0]
    if dtype_of(a) != dtype_of(b):
        a, b = adapt(context, a, lhs[1], dtype_of(b)), adapt(context, b, rhs[1], dtype_of(a))
    if dtype_of(a) != dtype_of(b):
        raise context.error(
            f"expected operands of one type, got {dtype_of(a)} and {dtype_of(b)}: "
            f'convert with T.Cast("{dtype_of(a)}", ...)',
            place,
        )
    return a, b
