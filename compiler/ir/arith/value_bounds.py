"""Bounds of expressions at many points of their variables, whatever rounds their floats.

An index may be computed by floating-point arithmetic, such as `T.Cast("int32", T.floor(v * 0.5))`.
Kernels may fuse or reorder its operations, and round otherwise than NumPy does. So each value is an
interval that grows with every rounding; the index is known if its interval is narrow enough.

Example: `v * 0.1 + 0.5` at v = 25 lies between 2.9999995 and 3.0000005, so its floor is 2 or 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from compiler.ir.arith.values import UnknownError, Values, value_at
from compiler.ir.core.dtypes import epsilon, is_float, is_integer, smallest_and_largest
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Call,
    Cast,
    Conditional,
    Expr,
    FloatImm,
    Select,
    Var,
)

Bounds: TypeAlias = tuple[Values, Values]
"""The least and the greatest value at each point."""

# An operation may be computed by several that round, such as a quotient by a reciprocal. Chosen.
_ROUNDINGS = 4
_LEAST_NORMAL = 1.2e-38
"""About the least normal number of float32, in which narrower floats are computed, too."""
_MONOTONE = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def bounds_at(expr: Expr, points: Mapping[Var, Values]) -> Bounds:
    """Return bounds of an expression at some points of its variables.

    Raises:
        UnknownError: If the variables do not determine it, or no rule bounds an operation.
    """
    try:
        exact = value_at(expr, points)
        return exact, exact
    except UnknownError:
        pass
    match expr:
        case FloatImm(value):
            return np.asarray(value), np.asarray(value)
        case Cast(dtype, value):
            return _converted(bounds_at(value, points), dtype_of(value), dtype)
        case Call("floor" | "ceil" | "trunc" as name, (value,), _):
            low, high = bounds_at(value, points)
            return _MONOTONE[name](low), _MONOTONE[name](high)
        case Select(_, then, otherwise) | Conditional(_, then, otherwise):
            (a, b), (c, d) = bounds_at(then, points), bounds_at(otherwise, points)
            return np.minimum(a, c), np.maximum(b, d)
        case BinOp(op, lhs, rhs):
            dtype = dtype_of(lhs)
            result = _combined(op, bounds_at(lhs, points), bounds_at(rhs, points))
            return _rounded(result, dtype) if is_float(dtype) else result
        case _:
            raise UnknownError


def _combined(op: str, lhs: Bounds, rhs: Bounds) -> Bounds:
    (a, b), (c, d) = lhs, rhs
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*" | "/" if op == "*" or bool(np.all((c > 0) | (d < 0))):
            corners = [x * y if op == "*" else x / y for x in (a, b) for y in (c, d)]
            return np.minimum.reduce(corners), np.maximum.reduce(corners)
        case "min":
            return np.minimum(a, c), np.minimum(b, d)
        case "max":
            return np.maximum(a, c), np.maximum(b, d)
        case "//" if bool(np.all(c == d)) and bool(np.all(c > 0)):
            return a // c, b // c
        case _:
            raise UnknownError


def _converted(bounds: Bounds, source: str, dtype: str) -> Bounds:
    low, high = bounds
    if is_float(dtype):  # type: ignore[arg-type]
        return _rounded((np.asarray(low, float), np.asarray(high, float)), dtype)
    if not is_integer(dtype):  # type: ignore[arg-type]
        raise UnknownError
    least, greatest = smallest_and_largest(dtype)  # type: ignore[arg-type]
    low, high = np.trunc(low), np.trunc(high)
    if not (np.all(low >= least) and np.all(high <= greatest)):
        raise UnknownError
    return low.astype(np.int64), high.astype(np.int64)


def _rounded(bounds: Bounds, dtype: str) -> Bounds:
    """Return bounds of what an operation of a type computes, given those of the exact result."""
    low, high = bounds
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise UnknownError
    relative = _ROUNDINGS * epsilon(dtype)  # type: ignore[arg-type]
    # Zero is exact; subnormal numbers may be flushed to it.
    flushed = np.where((low == 0) & (high == 0), 0.0, _LEAST_NORMAL)
    return low - np.abs(low) * relative - flushed, high + np.abs(high) * relative + flushed
