"""Sequences of tensors: lists while a model is read, of a length that is known.

Inputs and results of a model are tensors.
"""

from __future__ import annotations

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.operators.axes import check_axis
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.limits import MAX_TRIPS
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.graph.read_onnx.symbolic import TensorSequence


@onnx_operator("SequenceConstruct")
def _construct(call: OnnxCall) -> TensorSequence:
    elements = tuple(call.operand(position) for position in range(len(call.inputs)))
    return TensorSequence(elements[0].type.dtype, elements)


@onnx_operator("SequenceEmpty")
def _empty(call: OnnxCall) -> TensorSequence:
    return TensorSequence(call.dtype_attr("dtype") or "float32")


@onnx_operator("SequenceLength")
def _length(call: OnnxCall) -> Operand:
    return call.constant(np.int64(len(call.sequence(0).elements)))


def _position(call: OnnxCall, operand: int, length: int, end: int) -> int:
    """Return a position below `end`, by default the last; negative ones count from `length`."""
    if not call.has(operand):
        return end - 1
    position = int(call.scalar_of(operand, "the position").item())
    if not -length <= position < end:
        raise ModelError(f"the position is {position}: expected {-length} to {end - 1}")
    return position + length if position < 0 else position


@onnx_operator("SequenceAt")
def _at(call: OnnxCall) -> Operand:
    elements = call.sequence(0).elements
    return elements[_position(call, 1, len(elements), len(elements))]


@onnx_operator("SequenceErase")
def _erase(call: OnnxCall) -> TensorSequence:
    sequence = call.sequence(0)
    elements = sequence.elements
    if not elements:
        raise ModelError("the sequence is empty")
    position = _position(call, 1, len(elements), len(elements))
    return TensorSequence(sequence.dtype, (*elements[:position], *elements[position + 1 :]))


@onnx_operator("SequenceInsert")
def _insert(call: OnnxCall) -> TensorSequence:
    sequence, element = call.sequence(0), call.operand(1)
    if element.type.dtype != sequence.dtype:
        raise ModelError(f"{element.type.dtype} is inserted into a sequence of {sequence.dtype}")
    before = sequence.elements
    position = _position(call, 2, len(before), len(before) + 1)
    return TensorSequence(sequence.dtype, (*before[:position], element, *before[position:]))


@onnx_operator("SplitToSequence")
def _split(call: OnnxCall) -> TensorSequence:
    x = call.operand(0)
    axis = check_axis("SplitToSequence", call.int_attr("axis", 0), x.type.rank)
    extent = call.static_type(0).static_shape[axis]
    sizes = _sizes(call, extent)
    if len(sizes) > MAX_TRIPS:
        raise ModelError(f"a sequence of {len(sizes)} tensors: expected {MAX_TRIPS} or fewer")
    elements: list[Operand] = []
    begin = 0
    for size in sizes:
        part = call.add(
            "strided_slice", x, axes=(axis,), begin=(begin,), end=(begin + size,), strides=(1,)
        )
        if not call.has(1) and not call.int_attr("keepdims", 1):
            part = call.add("squeeze", part, axis=(axis,))
        elements.append(part)
        begin += size
    return TensorSequence(x.type.dtype, tuple(elements))


def _sizes(call: OnnxCall, extent: int) -> list[int]:
    if not call.has(1):
        return [1] * extent
    split = call.constant_of(1, "the sizes of the parts")
    if split.ndim:
        sizes = [int(size) for size in split.reshape(-1)]
        if sum(sizes) != extent or min(sizes, default=0) < 0:
            raise ModelError(f"an axis of {extent} is split into {sizes}")
        return sizes
    size = int(split)
    if size < 1:
        raise ModelError(f"an axis of {extent} is split into parts of {size}")
    return [min(size, extent - begin) for begin in range(0, extent, size)]


@onnx_operator("ConcatFromSequence")
def _concat(call: OnnxCall) -> Operand:
    elements: tuple[Operand, ...] = call.sequence(0).elements
    if not elements:
        raise ModelError("the sequence is empty")
    axis = call.int_attr("axis")
    if call.int_attr("new_axis", 0):
        axis = check_axis("ConcatFromSequence", axis, elements[0].type.rank + 1)
        elements = tuple(call.add("expand_dims", x, axis=(axis,)) for x in elements)
    return call.add("concat", *elements, axis=axis)
