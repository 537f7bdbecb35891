"""Quantized operators: exact sums of integers, and what makes them narrow or wide again."""

from __future__ import annotations

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, Constant, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.convolution import check_kernel_shape, with_bias
from compiler.graph.read_onnx.conversions.windows import WindowAttrs, spatial_rank, window_attrs
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest, sum_dtype


@onnx_operator("QuantizeLinear")
def _quantize(call: OnnxCall) -> Operand:
    x, scale, zero_point = call.operand(0), call.operand(1), call.optional(2)
    dtype: DType = call.dtype_attr("output_dtype") or "uint8"
    dtype = dtype if zero_point is None else zero_point.type.dtype
    if not is_float(x.type.dtype):
        x = call.add("astype", x, dtype=scale.type.dtype)  # ONNX allows int32, and divides floats
    if is_float(dtype) and not call.int_attr("saturate", 1):
        return call.add("astype", call.add("divide", x, scale), dtype=dtype)
    attrs = _blocks(call)
    return call.add("quantize", x, scale, _without_zeros(zero_point), out_dtype=dtype, **attrs)


@onnx_operator("DequantizeLinear")
def _dequantize(call: OnnxCall) -> Operand:
    x, scale, zero_point = call.operand(0), call.operand(1), call.optional(2)
    dtype = call.dtype_attr("output_dtype") or scale.type.dtype
    attrs = _blocks(call)
    return call.add("dequantize", x, scale, _without_zeros(zero_point), out_dtype=dtype, **attrs)


def _blocks(call: OnnxCall) -> dict[str, Attr]:
    is_whole = call.type(0).rank < 2
    axis = 0 if is_whole else call.int_attr("axis", 1)
    return {"axis": axis, "block_size": call.int_attr("block_size", 0)}


@onnx_operator("MatMulInteger")
def _matmul_integer(call: OnnxCall) -> Operand:
    return _product(call, call.operand(0), call.operand(1), call.optional(2), call.optional(3))


@onnx_operator("QLinearMatMul")
def _qlinear_matmul(call: OnnxCall) -> Operand:
    a, a_scale, a_zero, b, b_scale, b_zero = (call.operand(k) for k in range(6))
    total = _product(call, a, b, a_zero, b_zero)
    if total.type.rank > 1:
        a_scale = _by_row(call, a_scale)
    return _narrowed(call, total, call.add("multiply", a_scale, b_scale), 6)


def _product(
    call: OnnxCall, a: Operand, b: Operand, a_zero: Operand | None, b_zero: Operand | None
) -> Operand:
    """Return `(a - a_zero) @ (b - b_zero)` in int32.

    The product is one of the narrow operands. What their zero points add to it is a sum of rows, or
    of columns: `a @ b - a_zero * sum(b) - sum(a) * b_zero + k * a_zero * b_zero`.
    """
    a, a_zero = _moved_to_zero(call, a, _without_zeros(a_zero), (-1, 1))
    b, b_zero = _moved_to_zero(call, b, _without_zeros(b_zero), (-1,))
    if (a_zero is not None or b_zero is not None) and min(a.type.rank, b.type.rank) < 2:
        a, b = (_difference(call, x, z) for x, z in ((a, a_zero), (b, b_zero)))
        return call.add("matmul", a, b, out_dtype="int32")
    total = call.add("matmul", a, b, out_dtype="int32")
    rows, columns = (None if z is None else _wide(call, z) for z in (a_zero, b_zero))
    if rows is not None:
        rows = _by_row(call, rows)
        sums = call.add("sum", _wide(call, b), axis=(-2,), keepdims=True)
        if columns is not None:
            # The sum of `b - b_zero`.
            k = a.type.shape[-1]
            if not isinstance(k, int):
                raise ModelError(f"the extent {k} of a product is symbolic")
            sums = call.add("subtract", sums, call.add("multiply", columns, call.like(columns, k)))
        total = call.add("subtract", total, call.add("multiply", rows, sums))
    if columns is not None:
        sums = call.add("sum", _wide(call, a), axis=(-1,), keepdims=True)
        total = call.add("subtract", total, call.add("multiply", sums, columns))
    return total


def _by_row(call: OnnxCall, parameter: Operand) -> Operand:
    """Return numbers for each row as a column; a single number stays one."""
    if parameter.type.rank != 1 or parameter.type.shape == (1,):
        return parameter
    return call.add("expand_dims", parameter, axis=(1,))


def _without_zeros(zero_point: Operand | None) -> Operand | None:
    """Return a zero point, or None if it is known to be zero."""
    is_zero = isinstance(zero_point, Constant) and not zero_point.elements.any()
    return None if is_zero else zero_point


def _wide(call: OnnxCall, operand: Operand) -> Operand:
    return call.add("astype", operand, dtype="int32")


def _difference(call: OnnxCall, operand: Operand, zero_point: Operand | None) -> Operand:
    """Return an operand less its zero point, in int32."""
    wide = _wide(call, operand)
    return wide if zero_point is None else call.add("subtract", wide, _wide(call, zero_point))


def _moved_to_zero(
    call: OnnxCall, operand: Operand, zero_point: Operand | None, shape: tuple[int, ...]
) -> tuple[Operand, Operand | None]:
    """Return constant weights less their zero point, or less 128, if they then are signed bytes.

    Args:
        call: The node.
        operand: The weights.
        zero_point: Their zero point; several have the given shape beside the weights.
        shape: See `zero_point`.

    Returns:
        The operand, and the zero point that it still has.
    """
    if not isinstance(operand, Constant) or not isinstance(zero_point, Constant):
        return operand, zero_point
    shift = zero_point.elements.astype(np.int32)
    shift = shift.reshape(()) if shift.size == 1 else shift
    shift = shift.reshape(shape) if shift.ndim == 1 else shift
    moved = operand.elements.astype(np.int32) - shift
    low, high = smallest_and_largest("int8")
    if moved.min() >= low and moved.max() <= high:
        return call.constant(moved.astype(np.int8)), None
    if operand.type.dtype != "uint8":
        return operand, zero_point
    # Products of unsigned bytes and signed ones have instructions.
    signed = ((x.elements ^ 128).view(np.int8) for x in (operand, zero_point))
    weights, point = map(call.constant, signed)
    return weights, point


@onnx_operator("ConvInteger")
def _conv_integer(call: OnnxCall) -> Operand:
    return _convolution(call, call.operand(1), call.optional(2), call.optional(3))


@onnx_operator("QLinearConv")
def _qlinear_conv(call: OnnxCall) -> Operand:
    x_scale, x_zero = call.operand(1), call.operand(2)
    w, w_scale, w_zero = (call.operand(k) for k in (3, 4, 5))
    total = with_bias(call, _convolution(call, w, x_zero, w_zero), call.optional(8))
    if w_scale.type.rank == 1 and w_scale.type.shape != (1,):
        shape = (-1, *[1] * (total.type.rank - 2))
        w_scale = call.add("reshape", w_scale, shape=shape)
    return _narrowed(call, total, call.add("multiply", x_scale, w_scale), 6)


def _convolution(
    call: OnnxCall, w: Operand, x_zero: Operand | None, w_zero: Operand | None
) -> Operand:
    """Return the convolution of `x - x_zero` with `w - w_zero` in int32."""
    rank, kernel = spatial_rank(call), w.type.static_shape[2:]
    check_kernel_shape(call, kernel)
    windows, x = window_attrs(call, kernel), call.operand(0)
    ones = (1,) * (rank + 1)
    w, w_zero = _moved_to_zero(call, w, _without_zeros(w_zero), (-1, *ones))
    x_zero = _without_zeros(x_zero)
    attrs: dict[str, Attr] = {"groups": call.int_attr("group", 1), "out_dtype": "int32"}
    steps: dict[str, Attr] = {"strides": windows.strides, "dilation": windows.dilation}
    if w_zero is not None:
        if w_zero.type.rank == 1 and w_zero.type.shape != (1,):
            w_zero = call.add("reshape", w_zero, shape=(-1, *ones))
        wide = _difference(call, x, x_zero), _difference(call, w, w_zero)
        return call.add(f"nn.conv{rank}d", *wide, **windows.attrs, **attrs)
    if x_zero is None:
        return call.add(f"nn.conv{rank}d", x, w, **windows.attrs, **attrs)
    padded = _padded(call, x, x_zero, windows)
    total = call.add(f"nn.conv{rank}d", padded, w, **steps, **attrs)
    # What the zero point adds to each window, of which the padding has as much.
    axes = tuple(range(1, rank + 2))
    sums = call.add("sum", _wide(call, w), axis=axes, keepdims=False)
    more = call.add("multiply", _wide(call, x_zero), sums)
    return call.add("subtract", total, call.add("reshape", more, shape=(-1, *ones[1:])))


def _padded(call: OnnxCall, x: Operand, zero_point: Operand, windows: WindowAttrs) -> Operand:
    """Return an image that is padded with its zero point."""
    rank = len(windows.strides)
    sides = tuple(zip(windows.padding[:rank], windows.padding[rank:], strict=True))
    if not any(windows.padding):
        return x
    widths = ((0, 0), (0, 0), *sides)
    if isinstance(zero_point, Constant):
        value = int(zero_point.elements.reshape(()))
        return call.add("nn.pad", x, pad_width=widths, pad_value=value)
    padded = call.add("nn.pad", x, pad_width=widths)
    space = call.static_type(0).static_shape[2:]
    is_image = call.constant(np.pad(np.ones((1, 1, *space), np.bool_), widths))
    point = call.add("reshape", zero_point, shape=())
    return call.add("where", is_image, padded, point)


def _narrowed(call: OnnxCall, total: Operand, scale: Operand, position: int) -> Operand:
    """Return sums times a scale, over the scale of the result, with the zero point of the result.

    Args:
        call: The node.
        total: Sums in int32.
        scale: The product of the scales of the operands.
        position: The number of the operand that is the scale of the result; its zero point follows.
    """
    zero_point = call.operand(position + 1)
    wide = sum_dtype(scale.type.dtype)
    scales = (call.add("astype", x, dtype=wide) for x in (scale, call.operand(position)))
    factor = call.add("divide", *scales)
    scaled = call.add("multiply", call.add("astype", total, dtype=wide), factor)
    rounded = call.add("round", scaled)
    if _without_zeros(zero_point) is not None:
        rounded = call.add("add", rounded, call.add("astype", zero_point, dtype=wide))
    low, high = smallest_and_largest(zero_point.type.dtype)
    within = call.add("clip", rounded, min=float(low), max=float(high))
    return call.add("astype", within, dtype=zero_point.type.dtype)
