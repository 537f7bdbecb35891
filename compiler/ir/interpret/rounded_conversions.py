"""Operands of conversions from floats to integers, rounded as the types of the program require.

Interpreters compute in float64, so that results are more exact than those of kernels. An integer
leaves no tolerance: it must be what the program's own types give. For example, the product of an
integer and a scale may be a tie in float32 alone, and a tie is rounded to the even integer.

    int8(round(float32(sum) * scale))  ->  int8(float32(round(float32(float32(sum) * scale))))

One operation in float64 that is rounded to float32 is the operation in float32 (Figueroa, "When is
double rounding innocuous?", 1995).
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.dtypes import is_float, is_integer, sum_dtype
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, BlockRealize, Call, Cast, Expr, FloatImm, Load
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, transform, walk


def with_rounded_conversions(func: PrimFunc) -> PrimFunc:
    """Return a program whose conversions to integers have operands rounded after each operation.

    Narrow floats are computed in float32, as kernels do.
    """
    if not any(isinstance(node, Cast) and _drops_fraction(node) for node in walk(func.body)):
        return func
    body = transform(func.body, _converted)
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)


def _drops_fraction(cast: Cast) -> bool:
    return is_integer(cast.dtype) and is_float(dtype_of(cast.value))


def _converted(expr: Expr) -> Expr | None:
    if isinstance(expr, Cast) and _drops_fraction(expr):
        return Cast(expr.dtype, _rounded(expr.value))
    return None


def _rounded(expr: Expr) -> Expr:
    """Return an expression whose literals and operations are rounded to their floating types."""
    if isinstance(expr, Load):
        return expr
    dtype = dtype_of(expr)
    is_inexact = isinstance(expr, BinOp | Call | FloatImm) and is_float(dtype)
    exact = map_expr(expr, _rounded)
    return Cast(sum_dtype(dtype), exact) if is_inexact else exact
