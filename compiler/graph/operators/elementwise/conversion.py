"""Conversions between types, and limits of values."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.types import check_accepts
from compiler.ir.core.dtypes import DTYPES, DType, is_float, smallest_and_largest


def _astype_tensors(x: te.Tensor, *, dtype: DType) -> te.Tensor:
    return te.compute(x.shape, lambda *i: x[i].astype(dtype), name="astype")


def _astype_reference(x: Array, *, dtype: DType) -> Array:
    return x.astype(dtype)


@graph_operator("astype", "map", tensors=_astype_tensors, reference=_astype_reference)
def astype(x: TensorType, *, dtype: str) -> TensorType:
    """Infer a conversion: of floats to integers towards zero, of numbers to whether they are not 0.

    A float beyond a float of 8 bits becomes infinite or NaN; clip it before to saturate.
    """
    if dtype not in DTYPES:
        raise ModelError(f"astype: there is no type {dtype}")
    return TensorType(x.shape, cast("DType", dtype))


def _clip_tensors(x: te.Tensor, *, min: float, max: float) -> te.Tensor:
    low, high = _limits(x.dtype, min, max)

    def value(*i: te.Value) -> te.Value:
        result = x[i]
        if low is not None:
            result = te.max(result, te.const(low, x.dtype))
        if high is not None:
            result = te.min(result, te.const(high, x.dtype))
        return result

    return te.compute(x.shape, value, name="clip")


def _limits(dtype: DType, low: float, high: float) -> tuple[float | None, float | None]:
    """Return the limits that change a value of a type."""
    if is_float(dtype):
        return (None if low == -math.inf else low), (None if high == math.inf else high)
    smallest, largest = smallest_and_largest(dtype)
    return (low if low > smallest else None), (high if high < largest else None)


def _clip_reference(x: Array, *, min: float, max: float) -> Array:
    wide = x.astype(np.float64) if "float" in x.dtype.name else x.astype(object)
    return np.asarray(np.minimum(np.maximum(wide, min), max)).astype(x.dtype)


@graph_operator("clip", "map", tensors=_clip_tensors, reference=_clip_reference)
def clip(x: TensorType, *, min: float = -math.inf, max: float = math.inf) -> TensorType:
    """Infer `minimum(maximum(x, min), max)`; the limits of integers are integers or infinite."""
    check_accepts("clip", "number", x)
    if not is_float(x.dtype) and any(math.isfinite(n) and n != int(n) for n in (min, max)):
        raise ModelError(f"clip of {x.dtype}: the limits are {min} and {max}: expected integers")
    return x
