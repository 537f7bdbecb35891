"""Constants, shapes, and operators that change nothing."""

from __future__ import annotations

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.graph.read_onnx.symbolic import Result, TensorSequence

_NO_TRAINING = "export the model for inference"


@onnx_operator("Identity")
def _identity(call: OnnxCall) -> Result:
    operand = call.inputs[0]
    return operand if isinstance(operand, TensorSequence) else call.operand(0)


@onnx_operator("Dropout")
def _dropout(call: OnnxCall) -> tuple[Operand, Operand]:
    """Return the data: nothing is dropped when a model is used."""
    x = call.operand(0)
    if _is_trained(call):
        raise ModelError("a dropout in training mode is random", advice=_NO_TRAINING)
    mask = np.ones((), "bool" if call.opset >= 10 else x.type.dtype)
    return x, call.add("broadcast_to", call.constant(mask), shape=x.type.shape)


def _is_trained(call: OnnxCall) -> bool:
    """Return whether elements are dropped; before version 7, an attribute tells."""
    if call.opset < 7:
        ratio = call.float_attr("ratio", 0.5)
        return not call.int_attr("is_test", 0) and ratio != 0
    if not call.has(2) or not call.constant_of(2, "the mode").any():
        return False
    return not call.has(1) or bool(call.constant_of(1, "the ratio").any())


@onnx_operator("OptionalGetElement")
def _optional_element(call: OnnxCall) -> Operand:
    return call.operand(0)


@onnx_operator("OptionalHasElement")
def _has_element(call: OnnxCall) -> Operand:
    return call.constant(np.asarray(call.has(0)))


@onnx_operator("Constant")
def _constant(call: OnnxCall) -> Operand:
    if len(call.attributes) != 1:
        raise ModelError(f"a constant has {len(call.attributes)} values: expected one attribute")
    [(name, value)] = call.attributes.items()
    return call.constant(_elements(name, value))


def _elements(name: str, value: object) -> Array:
    match name:
        case "value" if isinstance(value, np.ndarray):
            return value
        case "value_float" | "value_floats":
            return np.asarray(value, np.float32)
        case "value_int" | "value_ints":
            return np.asarray(value, np.int64)
        case _:
            raise ModelError(f"a constant by the attribute {name} is not supported")


@onnx_operator("Shape")
def _shape(call: OnnxCall) -> Result:
    shape = call.type(0).shape
    first, end = call.int_attr("start", 0), call.int_attr("end", len(shape))
    return call.extents_operand(shape[first:end])


@onnx_operator("Size")
def _size(call: OnnxCall) -> Operand:
    return call.constant(np.int64(call.static_type(0).num_elements))
