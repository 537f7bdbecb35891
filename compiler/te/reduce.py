"""Reductions: sums, products and extremes over reduction axes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TypeAlias, overload

import numpy as np

from compiler.ir.dtypes import DType, is_float
from compiler.ir.nodes import BinOp
from compiler.te.functions import if_then_else
from compiler.te.value import (
    Combiner,
    ReduceAxis,
    Reduction,
    Value,
    ValueLike,
    as_value,
    const,
    same_dtype,
)

Axes: TypeAlias = ReduceAxis | Sequence[ReduceAxis]


def sum(value: Value, axis: Axes, where: Value | None = None) -> Reduction:
    """Add up `value` over the places of `axis` where `where` holds."""
    return _reduce("+", value, axis, where)


def prod(value: Value, axis: Axes, where: Value | None = None) -> Reduction:
    """Multiply up `value` over the places of `axis` where `where` holds."""
    return _reduce("*", value, axis, where)


@overload
def max(value: Value, other: Axes, *, where: Value | None = None) -> Reduction: ...  # type: ignore[overload-overlap]
@overload
def max(value: ValueLike, other: ValueLike) -> Value: ...
@overload
def max(value: Value, *, axis: Axes, where: Value | None = None) -> Reduction: ...
def max(
    value: ValueLike,
    other: ValueLike | Axes | None = None,
    *,
    axis: Axes | None = None,
    where: Value | None = None,
) -> Value | Reduction:
    """Take the larger of two values, or the largest of `value` over the places of `axis`."""
    return _extreme("max", value, other, axis, where)


@overload
def min(value: Value, other: Axes, *, where: Value | None = None) -> Reduction: ...  # type: ignore[overload-overlap]
@overload
def min(value: ValueLike, other: ValueLike) -> Value: ...
@overload
def min(value: Value, *, axis: Axes, where: Value | None = None) -> Reduction: ...
def min(
    value: ValueLike,
    other: ValueLike | Axes | None = None,
    *,
    axis: Axes | None = None,
    where: Value | None = None,
) -> Value | Reduction:
    """Take the smaller of two values, or the smallest of `value` over the places of `axis`."""
    return _extreme("min", value, other, axis, where)


def _extreme(
    combiner: Combiner,
    value: ValueLike,
    other: ValueLike | Axes | None,
    axis: Axes | None,
    where: Value | None,
) -> Value | Reduction:
    if isinstance(other, ReduceAxis | Sequence) and axis is None:
        axis, other = other, None
    if axis is not None and other is None:
        return _reduce(combiner, as_value(value), axis, where)
    if axis is not None or where is not None or other is None or isinstance(other, Sequence):
        raise TypeError(f"te.{combiner} takes either two values, or one value and an axis")
    a, b = same_dtype(value, other, f"te.{combiner}")
    return Value(BinOp(combiner, a.expr, b.expr), a, b)


def _reduce(combiner: Combiner, value: Value, axis: Axes, where: Value | None) -> Reduction:
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    if not axes or not builtins.all(isinstance(a, ReduceAxis) for a in axes):
        raise TypeError("a reduction needs one or more axes made by te.reduce_axis")
    if value.dtype == "bool":
        raise TypeError("a reduction takes numbers, got bool: convert with astype")
    identity = _identity(combiner, value.dtype)
    if where is not None:
        value = if_then_else(where, value, identity)
    return Reduction(combiner, value, axes, identity)


def _identity(combiner: Combiner, dtype: DType) -> Value:
    """Return what leaves any value of `dtype` as it is when combined with it."""
    match combiner:
        case "+":
            return const(0, dtype)
        case "*":
            return const(1, dtype)
        case "max" | "min":
            limits = np.finfo(dtype) if is_float(dtype) else np.iinfo(dtype)
            limit = limits.min if combiner == "max" else limits.max
            return const(limit.item() if isinstance(limit, np.generic) else limit, dtype)
