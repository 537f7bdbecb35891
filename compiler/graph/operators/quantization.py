"""Quantization: narrow values that stand for `scale * (value - zero_point)`.

There is one scale for the whole tensor, with rank 0 or one element; one for each index of `axis`;
or, with a block size, one for each block of that many indices of `axis`: then scales have the rank
of the tensor. Zero points have the shape and the meaning of scales.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.types import check_accepts
from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest, sum_dtype
from compiler.ir.core.nodes import static_shape

_QUANTIZED = frozenset(
    {"int8", "uint8", "int16", "uint16", "int32", "float8_e4m3fn", "float8_e5m2"}
)


def _quantize(
    x: te.Tensor,
    scale: te.Tensor,
    zero_point: te.Tensor | None = None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType,
) -> te.Tensor:
    dtype = sum_dtype(x.dtype)
    scale_at = _elements(scale, axis % max(x.ndim, 1), block_size)
    shift_at = None if zero_point is None else _elements(zero_point, axis % x.ndim, block_size)
    low, high = smallest_and_largest(out_dtype)

    def element(*i: te.Value) -> te.Value:
        value = x[i].astype(dtype) / scale_at(i).astype(dtype)
        value = value if is_float(out_dtype) else te.round(value)
        if shift_at is not None:
            value = value + shift_at(i).astype(dtype)
        return te.max(te.min(value, float(high)), float(low)).astype(out_dtype)

    return te.compute(static_shape(x.buffer), element, name="quantized")


def _elements(
    parameter: te.Tensor, axis: int, block_size: int
) -> Callable[[tuple[te.Value, ...]], te.Value]:
    """Return the function from an index of the tensor to its scale, or zero point."""
    shape = static_shape(parameter.buffer)

    def at(i: tuple[te.Value, ...]) -> te.Value:
        if all(extent == 1 for extent in shape):
            return parameter[(0,) * len(shape)]
        if len(shape) == 1:
            return parameter[i[axis]]
        return parameter[(*i[:axis], i[axis] // block_size, *i[axis + 1 :])]

    return at


def _quantize_arrays(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType,
) -> Array:
    value = widened(x) / _spread(widened(scale), x.shape, axis, block_size)
    value = value if is_float(out_dtype) else np.rint(value)
    if zero_point is not None:
        value = value + _spread(zero_point, x.shape, axis, block_size).astype(value.dtype)
    return np.clip(value, *smallest_and_largest(out_dtype)).astype(out_dtype)


def _spread(parameter: Array, shape: tuple[int, ...], axis: int, block_size: int) -> Array:
    """Return a scale, or a zero point, for each element."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim == 1:
        along = [1] * len(shape)
        along[axis] = -1
        return parameter.reshape(along)
    return np.repeat(parameter, block_size, axis).take(range(shape[axis]), axis)


@graph_operator("quantize", "map", tensors=_quantize, reference=_quantize_arrays)
def quantize(
    x: TensorType,
    scale: TensorType,
    zero_point: TensorType | None = None,
    *,
    axis: int = -1,
    block_size: int = 0,
    out_dtype: DType = "int8",
) -> TensorType:
    """Infer `round(x / scale) + zero_point`, with values out of range at the ends of the type.

    Halves are rounded to the even integer. A zero point has the type of the result.
    """
    check_accepts("quantize", "float", x, scale)
    if out_dtype not in _QUANTIZED:
        raise ModelError(
            f"quantize to {out_dtype}: expected one of {', '.join(sorted(_QUANTIZED))}"
        )
    _check_parameters("quantize", x, (scale, zero_point), axis, block_size)
    return TensorType(x.shape, out_dtype)


def _dequantize(
    x: te.Tensor,
    scale: te.Tensor,
    zero_point: te.Tensor | None = None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType,
) -> te.Tensor:
    dtype = sum_dtype(out_dtype)
    between: DType = dtype if is_float(x.dtype) else "int32"
    scale_at = _elements(scale, axis % max(x.ndim, 1), block_size)
    shift_at = None if zero_point is None else _elements(zero_point, axis % x.ndim, block_size)

    def element(*i: te.Value) -> te.Value:
        value = x[i].astype(between)
        if shift_at is not None:
            value = value - shift_at(i).astype(between)
        return (value.astype(dtype) * scale_at(i).astype(dtype)).astype(out_dtype)

    return te.compute(static_shape(x.buffer), element, name="dequantized")


def _dequantize_arrays(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType,
) -> Array:
    value = x.astype(np.float64)
    if zero_point is not None:
        value = value - _spread(zero_point, x.shape, axis, block_size).astype(np.float64)
    return np.asarray(value * _spread(widened(scale), x.shape, axis, block_size))


@graph_operator("dequantize", "map", tensors=_dequantize, reference=_dequantize_arrays)
def dequantize(
    x: TensorType,
    scale: TensorType,
    zero_point: TensorType | None = None,
    *,
    axis: int = -1,
    block_size: int = 0,
    out_dtype: DType = "float32",
) -> TensorType:
    """Infer `(x - zero_point) * scale`."""
    check_accepts("dequantize", "float", scale)
    if x.dtype not in _QUANTIZED or not is_float(out_dtype):
        raise ModelError(
            f"dequantize of {x.dtype} to {out_dtype}: expected one of"
            f" {', '.join(sorted(_QUANTIZED))}, to floats"
        )
    _check_parameters("dequantize", x, (scale, zero_point), axis, block_size)
    return TensorType(x.shape, out_dtype)


def _check_parameters(
    operator: str,
    x: TensorType,
    parameters: tuple[TensorType, TensorType | None],
    axis: int,
    block_size: int,
) -> None:
    if x.rank:
        axis = check_axis(operator, axis, x.rank)
    for parameter in parameters:
        if parameter is None or all(extent == 1 for extent in parameter.shape):
            continue
        is_along_axis = parameter.rank == 1 and parameter.shape == x.shape[axis : axis + 1]
        if not is_along_axis and not _has_blocks(x, parameter, axis, block_size):
            raise ModelError(
                f"{operator} of {x.shape}: a scale or zero point has shape {parameter.shape}:"
                f" expected one, or one for each index of axis {axis} or block of {block_size}"
            )


def _has_blocks(x: TensorType, parameter: TensorType, axis: int, block_size: int) -> bool:
    if parameter.rank != x.rank or block_size < 1:
        return False
    extent = x.shape[axis]
    if not isinstance(extent, int):
        return False
    return parameter.shape == (*x.shape[:axis], -(-extent // block_size), *x.shape[axis + 1 :])
