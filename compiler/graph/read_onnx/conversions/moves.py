"""Operators that move elements: shapes, slices, joins, padding."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, product
from compiler.graph.nodes import Constant, Operand
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.broadcasting import broadcast_shapes
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator


@onnx_operator("Reshape")
def _reshape(call: OnnxCall) -> Operand:
    x = call.operand(0)
    shape = call.extents("shape", 1)
    if not call.int_attr("allowzero", 0):
        if any(extent == 0 and axis >= x.type.rank for axis, extent in enumerate(shape)):
            raise ModelError(
                f"{x.type.shape} becomes {shape}: a 0 stands for an axis that is missing"
            )
        shape = tuple(x.type.shape[k] if extent == 0 else extent for k, extent in enumerate(shape))
    return call.add("reshape", x, shape=shape)


@onnx_operator("Flatten")
def _flatten(call: OnnxCall) -> Operand:
    x = call.operand(0)
    axis = call.int_attr("axis", 1)
    if not -x.type.rank <= axis <= x.type.rank:
        raise ModelError(f"axis is {axis}: expected {-x.type.rank} to {x.type.rank}")
    axis = axis + x.type.rank if axis < 0 else axis
    shape = (product(x.type.shape[:axis]), product(x.type.shape[axis:]))
    return call.add("reshape", x, shape=shape)


@onnx_operator("Transpose")
def _transpose(call: OnnxCall) -> Operand:
    x = call.operand(0)
    axes = call.ints_attr("perm", tuple(reversed(range(x.type.rank))))
    return call.add("permute_dims", x, axes=axes)


@onnx_operator("Squeeze")
def _squeeze(call: OnnxCall) -> Operand:
    return call.add("squeeze", call.operand(0), axis=call.ints("axes", 1))


@onnx_operator("Unsqueeze")
def _unsqueeze(call: OnnxCall) -> Operand:
    return call.add("expand_dims", call.operand(0), axis=call.ints("axes", 1, ()))


@onnx_operator("Expand")
def _expand(call: OnnxCall) -> Operand:
    x = call.operand(0)
    shape = broadcast_shapes(x.type.shape, call.extents("shape", 1))
    return x if shape == x.type.shape else call.add("broadcast_to", x, shape=shape)


@onnx_operator("Tile")
def _tile(call: OnnxCall) -> Operand:
    return call.add("tile", call.operand(0), repeats=call.ints("repeats", 1))


@onnx_operator("Slice")
def _slice(call: OnnxCall) -> Operand:
    x = call.operand(0)
    begin, end = call.ints("starts", 1, ()), call.ints("ends", 2, ())
    assert begin is not None
    axes = call.ints("axes", 3, range(len(begin)))
    strides = call.ints("steps", 4, [1] * len(begin))
    assert axes is not None
    axes = tuple(check_axis("Slice", axis, x.type.rank) for axis in axes)
    assert strides is not None
    if len(begin) == len(axes) == len(strides):
        extents = [x.type.shape[axis] for axis in axes]
        begin = tuple(map(_clamped_begin, begin, extents, strides))
    return call.add("strided_slice", x, axes=axes, begin=begin, end=end, strides=strides)


def _clamped_begin(begin: int, extent: Extent, step: int) -> int:
    """Return where a slice begins: backwards, the first element at least, unlike in Python."""
    return max(begin, -extent) if step < 0 and isinstance(extent, int) else begin


@onnx_operator("Concat")
def _concat(call: OnnxCall) -> Operand:
    parts = [call.operand(position) for position in range(len(call.inputs))]
    axis = check_axis("Concat", call.int_attr("axis", 1), parts[0].type.rank)
    # Parts without elements have no place in a program.
    filled = [p for p in parts if p.type.rank <= axis or p.type.shape[axis] != 0] or parts[:1]
    return filled[0] if len(filled) == 1 else call.add("concat", *filled, axis=axis)


@onnx_operator("Split")
def _split(call: OnnxCall) -> tuple[Operand, ...]:
    x = call.operand(0)
    axis = check_axis("Split", call.int_attr("axis", 0), x.type.rank)
    extent, number = x.type.shape[axis], len(call.results)
    sizes = call.ints("split", 1)
    if sizes is None and not isinstance(extent, int):
        return call.add_all("split", x, indices_or_sections=number, axis=axis)
    if sizes is None:
        assert isinstance(extent, int)
        size = -(-extent // number)
        sizes = tuple(max(0, min(size, extent - size * k)) for k in range(number))
    if (isinstance(extent, int) and sum(sizes) != extent) or min(sizes) < 0:
        raise ModelError(f"{extent} elements in parts of {sizes}: expected a sum of {extent}")
    if 0 in sizes:
        return _parts(call, x, axis, sizes)
    return call.add_all("split", x, indices_or_sections=tuple(accumulate(sizes[:-1])), axis=axis)


def _parts(call: OnnxCall, x: Operand, axis: int, sizes: tuple[int, ...]) -> tuple[Operand, ...]:
    """Return parts of which some have no elements: each is a slice of its own."""
    ends = list(accumulate(sizes))
    return tuple(
        call.add("strided_slice", x, axes=(axis,), begin=(end - size,), end=(end,), strides=(1,))
        for size, end in zip(sizes, ends, strict=True)
    )


@onnx_operator("Pad")
def _pad(call: OnnxCall) -> Operand:
    x = call.operand(0)
    mode = call.string_attr("mode", "constant")
    pairs = _pad_width(call, x.type.rank)
    value = _pad_value(call) if mode == "constant" else 0
    x = _cropped(call, x, pairs)
    width = tuple((max(low, 0), max(high, 0)) for low, high in pairs)
    if not any(n for pair in width for n in pair):
        return x
    if mode == "constant" and 0 in x.type.shape:
        extents = zip(x.type.shape, width, strict=True)
        shape = tuple(n + low + high if isinstance(n, int) else n for n, (low, high) in extents)
        return call.add("broadcast_to", call.like(x, value), shape=shape)
    return call.add("nn.pad", x, pad_width=width, pad_value=value, pad_mode=mode)


def _pad_width(call: OnnxCall, rank: int) -> list[tuple[int, int]]:
    """Return the elements before and after each axis; fewer than none for elements to remove."""
    pads = call.ints("pads", 1, ())
    axes = call.ints("axes", 3, range(rank))
    assert pads is not None
    assert axes is not None
    if len(pads) != 2 * len(axes):
        raise ModelError(f"pads are {pads}: expected two numbers for each axis of {axes}")
    pairs = [(0, 0)] * rank
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        pairs[check_axis("Pad", axis, rank)] = (low, high)
    return pairs


def _pad_value(call: OnnxCall) -> float:
    if not call.has(2):
        return call.float_attr("value", 0.0)
    number: float = call.scalar_of(2, "the padding value").item()
    return number


def _cropped(call: OnnxCall, x: Operand, pairs: list[tuple[int, int]]) -> Operand:
    """Return a tensor without the elements that a negative padding removes."""
    axes = tuple(axis for axis, pair in enumerate(pairs) if min(pair) < 0)
    if not axes:
        return x
    begin = tuple(max(-pairs[axis][0], 0) for axis in axes)
    end = tuple(pairs[axis][1] if pairs[axis][1] < 0 else 2**31 - 1 for axis in axes)
    return call.add("strided_slice", x, axes=axes, begin=begin, end=end, strides=(1,) * len(axes))


@onnx_operator("DepthToSpace")
def _depth_to_space(call: OnnxCall) -> Operand:
    size, mode = call.int_attr("blocksize"), call.string_attr("mode", "DCR")
    return call.add("depth_to_space", call.operand(0), block_size=size, mode=mode)


@onnx_operator("SpaceToDepth")
def _space_to_depth(call: OnnxCall) -> Operand:
    size, mode = call.int_attr("blocksize"), call.string_attr("mode", "DCR")
    return call.add("space_to_depth", call.operand(0), block_size=size, mode=mode)


@onnx_operator("Trilu")
def _trilu(call: OnnxCall) -> Operand:
    k = int(call.scalar_of(1, "the diagonal")) if call.has(1) else 0
    return call.add("triu" if call.int_attr("upper", 1) else "tril", call.operand(0), k=k)


@onnx_operator("ConstantOfShape")
def _constant_of_shape(call: OnnxCall) -> Operand:
    value = call.tensor_attr("value")
    if value is not None and value.size != 1:
        raise ModelError(f"the attribute value has {value.size} elements: expected one")
    scalar = call.constant(np.float32(0) if value is None else value.reshape(()))
    shape: tuple[Extent, ...] = call.extents("input", 0)
    return call.add("broadcast_to", scalar, shape=shape)


@onnx_operator("EyeLike")
def _eye_like(call: OnnxCall) -> Constant:
    given = call.static_type(0)
    if given.rank != 2:
        raise ModelError(f"operand 0 has the shape {given.shape}: expected a matrix")
    rows, columns = given.static_shape
    dtype = call.dtype_attr("dtype") or given.dtype
    call.check_size(rows, columns)
    return call.constant(np.eye(rows, columns, call.int_attr("k", 0)).astype(dtype))


@onnx_operator("Range")
def _range(call: OnnxCall) -> Constant:
    names = ("the start", "the limit", "the step")
    bounds = [call.scalar_of(k, name) for k, name in enumerate(names)]
    start, limit, step = (bound.item() for bound in bounds)
    if step == 0:
        raise ModelError("the step is 0")
    quotient = (limit - start) / step
    if not np.isfinite(quotient):
        raise ModelError(f"a range from {start} to {limit} by {step} has no end")
    count = max(math.ceil(quotient), 0)
    call.check_size(count)
    return call.constant((start + step * np.arange(count)).astype(bounds[0].dtype))
