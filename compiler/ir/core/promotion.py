"""The common type of two operands, by TVM's rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeGuard

from compiler.ir.core.dtypes import DType, bits, is_float, is_integer, is_signed, wrapped
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Call, Cast, Expr, FloatImm, IntImm
from compiler.ir.core.opaque import OPAQUE


def common_type(a: DType, b: DType) -> DType | None:
    """Return the type of an operation on two types; None if there is none."""
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if bits(a) != bits(b):
        return a if bits(a) > bits(b) else b
    if is_float(a):
        return a if a == b else None
    return b if is_signed(a) else a


def widest(dtypes: Iterable[DType]) -> DType:
    """Return the common type of integers."""
    common = reduce(lambda a, b: common_type(a, b) or a, dtypes)
    assert is_integer(common), "index types are integer types"
    return common


def promoted(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return two operands converted to their common type; unchanged if they have none."""
    common = common_type(dtype_of(a), dtype_of(b))
    return (a, b) if common is None else (converted(a, common), converted(b, common))


def converted(expr: Expr, dtype: DType) -> Expr:
    """Return an expression converted to a type; a literal that fits becomes one of that type."""
    if dtype_of(expr) == dtype:
        return expr
    if isinstance(expr, IntImm) and is_float(dtype):
        return FloatImm(float(expr.value), dtype)
    if isinstance(expr, FloatImm) and is_float(dtype) and not math.isfinite(expr.value):
        return FloatImm(expr.value, dtype)
    if isinstance(expr, IntImm) and is_integer(dtype) and wrapped(expr.value, dtype) == expr.value:
        return IntImm(int(expr.value), dtype)
    if is_anything(expr):
        return replace(expr, dtype=dtype)
    return Cast(dtype, expr)


def is_anything(expr: Expr) -> TypeGuard[Call]:
    """Return whether an expression is a call that takes the type its context requires."""
    return isinstance(expr, Call) and expr.name in OPAQUE and OPAQUE[expr.name].dtype is None
