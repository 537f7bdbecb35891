"""Operators that read or write elements at indices, and sorting."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.operators.axes import check_axis
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.ir.core.dtypes import is_integer


@onnx_operator("Gather")
def _gather(call: OnnxCall) -> Operand:
    return call.add("take", call.operand(0), call.operand(1), axis=call.int_attr("axis", 0))


@onnx_operator("GatherElements")
def _gather_elements(call: OnnxCall) -> Operand:
    axis = call.int_attr("axis", 0)
    return call.add("gather_elements", call.operand(0), call.operand(1), axis=axis)


@onnx_operator("GatherND")
def _gather_nd(call: OnnxCall) -> Operand:
    batch_dims = call.int_attr("batch_dims", 0)
    return call.add("gather_nd", call.operand(0), call.operand(1), batch_dims=batch_dims)


def _reduction(call: OnnxCall) -> str:
    given = call.string_attr("reduction", "none")
    return "update" if given == "none" else given


@onnx_operator("ScatterElements", "Scatter")
def _scatter_elements(call: OnnxCall) -> Operand:
    data, indices, updates = (call.operand(k) for k in range(3))
    if 0 in indices.type.shape:
        return data
    axis = call.int_attr("axis", 0)
    return call.add(
        "scatter_elements", data, indices, updates, axis=axis, reduction=_reduction(call)
    )


@onnx_operator("ScatterND")
def _scatter_nd(call: OnnxCall) -> Operand:
    data, indices, updates = (call.operand(k) for k in range(3))
    if 0 in updates.type.shape:
        return data
    return call.add("scatter_nd", data, indices, updates, reduction=_reduction(call))


@onnx_operator("TensorScatter")
def _tensor_scatter(call: OnnxCall) -> Operand:
    cache, update = call.operand(0), call.operand(1)
    axis = check_axis("TensorScatter", call.int_attr("axis", -2), cache.type.rank)
    shape, rank = update.type.shape, cache.type.rank
    length, extent = call.static_type(1).static_shape[axis], call.static_type(0).static_shape[axis]
    column = (1,) * axis + (-1,) + (1,) * (rank - axis - 1)
    call.check_size(length)
    indices: Operand = call.constant(np.arange(length).reshape(column))
    if call.has(2):
        first = call.add("expand_dims", call.operand(2), axis=tuple(range(1, rank)))
        indices = call.add("add", first, indices)
    if call.string_attr("mode", "linear") == "circular":
        indices = call.add("mod", indices, call.like(indices, extent))
    indices = call.add("broadcast_to", indices, shape=shape)
    return call.add("scatter_elements", cache, indices, update, axis=axis)


@onnx_operator("OneHot")
def _one_hot(call: OnnxCall) -> Operand:
    indices, values = call.operand(0), call.operand(2)
    if not is_integer(indices.type.dtype):
        indices = call.add("astype", indices, dtype="int64")
    depth = int(call.scalar_of(1, "the depth"))
    off, on = call.add_all("split", values, indices_or_sections=2)
    scalars = [call.add("reshape", value, shape=()) for value in (on, off)]
    return call.add("one_hot", indices, *scalars, depth=depth, axis=call.int_attr("axis", -1))


@onnx_operator("TopK")
def _topk(call: OnnxCall) -> tuple[Operand, ...]:
    x = call.operand(0)
    k = call.int_attr("k") if "k" in call.attributes else int(call.scalar_of(1, "k"))
    axis = check_axis("TopK", call.int_attr("axis", -1), x.type.rank)
    if k == 0:
        shape = (*call.static_type(0).static_shape[:axis], 0, *x.type.static_shape[axis + 1 :])
        return call.constant(np.empty(shape, x.type.dtype)), call.constant(
            np.empty(shape, np.int64)
        )
    return call.add_all("topk", x, k=k, axis=axis, largest=bool(call.int_attr("largest", 1)))


@onnx_operator("ReverseSequence")
def _reverse_sequence(call: OnnxCall) -> Operand:
    return call.add(
        "reverse_sequence",
        call.operand(0),
        call.operand(1),
        seq_axis=call.int_attr("time_axis", 0),
        batch_axis=call.int_attr("batch_axis", 1),
    )


@onnx_operator("Compress")
def _compress(call: OnnxCall) -> Operand:
    x = call.operand(0)
    indices = np.flatnonzero(call.constant_of(1, "the condition"))
    if "axis" in call.attributes:
        return call.add("take", x, call.constant(indices), axis=call.int_attr("axis"))
    flat = call.add("reshape", x, shape=(-1,))
    return call.add("take", flat, call.constant(indices), axis=0)


@onnx_operator(
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
def _random(_: OnnxCall) -> NoReturn:
    raise ModelError(
        "the result is random", advice="make it an input of the model, and pass the numbers"
    )
