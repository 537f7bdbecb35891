"""Pools, and sums of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.windows import spatial_rank, window_attrs
from compiler.graph.read_onnx.registry import onnx_operator


def _attrs(call: OnnxCall) -> dict[str, Attr]:
    kernel = call.ints_attr("kernel_shape")
    if len(kernel) != spatial_rank(call):
        raise ModelError(f"kernel_shape is {kernel}, and the image has {call.type(0).shape}")
    is_ceil = bool(call.int_attr("ceil_mode", 0))
    return {"pool_size": kernel, "ceil_mode": is_ceil, **window_attrs(call, kernel).attrs}


@onnx_operator("MaxPool")
def _max_pool(call: OnnxCall) -> Sequence[Operand]:
    x, attrs, name = call.operand(0), _attrs(call), f"nn.max_pool{spatial_rank(call)}d"
    largest = call.add(name, x, **attrs)
    if not call.wants(1):
        return (largest,)
    n, c, *space = call.static_type(0).static_shape
    positions = call.add(f"{name}_positions", x, **attrs)
    if call.int_attr("storage_order", 0):
        positions = _by_column(call, positions, space)
    starts = np.arange(n * c).reshape(n, c, *[1] * len(space)) * math.prod(space)
    return largest, call.add("add", positions, call.constant(starts))


def _by_column(call: OnnxCall, positions: Operand, space: Sequence[int]) -> Operand:
    """Return positions among elements of which those of a column follow each other."""
    total: Operand = call.like(positions, 0)
    for axis, extent in enumerate(space):
        inner, stride = math.prod(space[axis + 1 :]), math.prod(space[:axis])
        quotient = call.add("floor_divide", positions, call.like(positions, inner))
        index = call.add("mod", quotient, call.like(positions, extent))
        total = call.add("add", total, call.add("multiply", index, call.like(positions, stride)))
    return total


@onnx_operator("AveragePool")
def _average_pool(call: OnnxCall) -> Operand:
    counts = bool(call.int_attr("count_include_pad", 0))
    name = f"nn.avg_pool{spatial_rank(call)}d"
    return call.add(name, call.operand(0), count_include_pad=counts, **_attrs(call))


@onnx_operator("LpPool")
def _lp_pool(call: OnnxCall) -> Operand:
    name, p = f"nn.lp_pool{spatial_rank(call)}d", call.int_attr("p", 2)
    return call.add(name, call.operand(0), p=p, **_attrs(call))


@onnx_operator("GlobalLpPool")
def _global_lp_pool(call: OnnxCall) -> Operand:
    name, space = f"nn.lp_pool{spatial_rank(call)}d", call.static_type(0).static_shape[2:]
    return call.add(name, call.operand(0), p=call.int_attr("p", 2), pool_size=space)


@onnx_operator("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(call: OnnxCall) -> Operand:
    axes = tuple(range(2, call.type(0).rank))
    op = "mean" if call.op_type == "GlobalAveragePool" else "max"
    return call.add(op, call.operand(0), axis=axes, keepdims=True)


@onnx_operator("MaxUnpool")
def _max_unpool(call: OnnxCall) -> Operand:
    pooled = call.static_type(0)
    shape = (*pooled.static_shape[:2], *_unpooled(call, pooled.static_shape[2:]))
    call.check_size(*shape)
    zeros = call.constant(np.zeros(math.prod(shape), pooled.dtype))
    positions, values = (call.add("reshape", call.operand(k), shape=(-1,)) for k in (1, 0))
    spread = call.add("scatter_elements", zeros, positions, values, axis=0)
    image = call.add("reshape", spread, shape=shape)
    wanted = call.ints("output_shape", 2, shape)
    if wanted is None or wanted == shape:
        return image
    if len(wanted) != len(shape):
        raise ModelError(f"output_shape is {wanted}: expected {len(shape)} extents")
    margins = tuple((0, size - given) for size, given in zip(wanted, shape, strict=True))
    return call.add("nn.pad", image, pad_width=margins)


def _unpooled(call: OnnxCall, space: Sequence[int]) -> list[int]:
    """Return the extents of the image that a pool of these windows had."""
    kernel, windows = call.ints_attr("kernel_shape"), window_attrs(call, ())
    before, after = windows.padding[: len(space)], windows.padding[len(space) :]
    parts = zip(space, windows.strides, kernel, before, after, strict=True)
    return [(size - 1) * stride + extent - b - a for size, stride, extent, b, a in parts]


@onnx_operator("Col2Im")
def _col2im(call: OnnxCall) -> Operand:
    size = tuple(int(n) for n in call.constant_of(1, "the shape of the image").reshape(-1))
    kernel = tuple(int(n) for n in call.constant_of(2, "the shape of the window").reshape(-1))
    ones = (1,) * len(kernel)
    return call.add(
        "col2im",
        call.operand(0),
        size=size,
        kernel=kernel,
        strides=call.ints_attr("strides", ones),
        padding=call.ints_attr("pads", (0, 0) * len(kernel)),
        dilation=call.ints_attr("dilations", ones),
    )
