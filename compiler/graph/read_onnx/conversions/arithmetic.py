"""Arithmetic, comparisons, logic and choices of tensors that are broadcast against each other."""

from __future__ import annotations

import math
from functools import reduce

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.old_broadcasting import NUMPY_BROADCASTING
from compiler.graph.read_onnx.registry import Conversion, onnx_operator
from compiler.ir.core.dtypes import is_float

_BINARY = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}


def _binary(op: str) -> Conversion:
    def convert(call: OnnxCall) -> Operand:
        return call.add(op, call.operand(0), call.operand(1))

    return convert


for _op_type, _op in _BINARY.items():
    onnx_operator(_op_type)(_binary(_op))


def _several(op: str) -> Conversion:
    """Return the conversion of an operator on any number of tensors."""

    def convert(call: OnnxCall) -> Operand:
        operands = [call.operand(position) for position in range(len(call.inputs))]
        total = reduce(lambda a, b: call.add(op, a, b), operands)
        if call.op_type == "Mean":
            return call.add("divide", total, call.like(total, len(operands)))
        return total

    return convert


onnx_operator("Sum", "Mean")(_several("add"))
onnx_operator("Max")(_several("maximum"))
onnx_operator("Min")(_several("minimum"))


@onnx_operator("Mod")
def _mod(call: OnnxCall) -> Operand:
    return call.add("fmod" if call.int_attr("fmod", 0) else "mod", call.operand(0), call.operand(1))


@onnx_operator("BitShift")
def _bit_shift(call: OnnxCall) -> Operand:
    op = "left_shift" if call.string_attr("direction") == "LEFT" else "right_shift"
    return call.add(op, call.operand(0), call.operand(1))


@onnx_operator("Pow")
def _pow(call: OnnxCall) -> Operand:
    base, exponent = call.operand(0), call.operand(1)
    is_square = isinstance(exponent, Constant) and exponent == call.like(exponent, 2)
    if is_square and is_float(base.type.dtype):
        return call.add("multiply", base, base)
    return call.add("power", base, exponent)


@onnx_operator("PRelu")
def _prelu(call: OnnxCall) -> Operand:
    x, slope = call.operand(0), call.operand(1)
    if call.opset < NUMPY_BROADCASTING and slope.type.rank == 1 and x.type.rank > 2:
        # One slope for each channel.
        slope = call.add("expand_dims", slope, axis=tuple(range(1, x.type.rank - 1)))
    return call.add("nn.prelu", x, slope)


@onnx_operator("Where")
def _where(call: OnnxCall) -> Operand:
    return call.add("where", call.operand(0), call.operand(1), call.operand(2))


@onnx_operator("Clip")
def _clip(call: OnnxCall) -> Operand:
    x = call.operand(0)
    low, high = call.optional(1), call.optional(2)
    if all(limit is None or isinstance(limit, Constant) for limit in (low, high)):
        return call.add("clip", x, min=_limit(call, "min", low), max=_limit(call, "max", high))
    if low is not None:
        x = call.add("maximum", x, low)
    return x if high is None else call.add("minimum", x, high)


def _limit(call: OnnxCall, name: str, operand: Operand | None) -> float:
    """Return a limit that is an attribute, a constant, or left out."""
    if isinstance(operand, Constant):
        if operand.type.num_elements != 1:
            raise ModelError(f"the operand {name} has {operand.type.shape}: expected a scalar")
        number: float = operand.elements.reshape(()).item()
        return number
    missing = -math.inf if name == "min" else math.inf
    return call.float_attr(name, missing)
