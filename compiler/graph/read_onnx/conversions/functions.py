"""Functions and activations of one tensor, and conversions between types."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, Operand
from compiler.graph.operator import find_operator
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import Conversion, onnx_operator
from compiler.ir.core.dtypes import DType, bits, is_float, smallest_and_largest

_PLAIN = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "Log", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt"),
    *("Tan", "Tanh", "IsNaN"),
)
"""The operators whose names differ from those of graphs in capital letters alone."""

_RENAMED = {
    "BitwiseNot": "bitwise_not",
    "HardSwish": "nn.hard_swish",
    "Mish": "nn.mish",
    "Neg": "negative",
    "Not": "logical_not",
    "Relu": "nn.relu",
    "Softplus": "nn.softplus",
    "Softsign": "nn.softsign",
}

_WITH_NUMBERS = {
    "Celu": "nn.celu",
    "Elu": "nn.elu",
    "HardSigmoid": "nn.hard_sigmoid",
    "LeakyRelu": "nn.leakyrelu",
    "Selu": "nn.selu",
    "Shrink": "nn.shrink",
    "ThresholdedRelu": "nn.thresholded_relu",
}
"""Operators whose attributes, all numbers, have the names and default values of ONNX."""


def _unary(op: str) -> Conversion:
    def convert(call: OnnxCall) -> Operand:
        attrs: dict[str, Attr] = {}
        for name, default in find_operator(op).defaults.items():
            if isinstance(default, float):
                attrs[name] = call.float_attr(name, default)
        return call.add(op, call.operand(0), **attrs)

    return convert


for _op_type, _op in {**{name: name.lower() for name in _PLAIN}, **_RENAMED}.items():
    onnx_operator(_op_type)(_unary(_op))
for _op_type, _op in _WITH_NUMBERS.items():
    onnx_operator(_op_type)(_unary(_op))


@onnx_operator("Gelu")
def _gelu(call: OnnxCall) -> Operand:
    is_exact = call.string_attr("approximate", "none") == "none"
    return call.add("nn.gelu" if is_exact else "nn.gelu_tanh", call.operand(0))


@onnx_operator("Swish")
def _swish(call: OnnxCall) -> Operand:
    x, alpha = call.operand(0), call.float_attr("alpha", 1.0)
    if alpha == 1:
        return call.add("nn.silu", x)
    scaled = call.add("multiply", x, call.like(x, alpha))
    return call.add("multiply", x, call.add("sigmoid", scaled))


@onnx_operator("IsInf")
def _isinf(call: OnnxCall) -> Operand:
    return call.add(
        "isinf",
        call.operand(0),
        detect_negative=bool(call.int_attr("detect_negative", 1)),
        detect_positive=bool(call.int_attr("detect_positive", 1)),
    )


@onnx_operator("Cast", "CastLike")
def _cast(call: OnnxCall) -> Operand:
    dtype = call.dtype_attr("to") if call.op_type == "Cast" else call.type(1).dtype
    if dtype is None:
        raise ModelError("the attribute to is missing")
    return _converted(call, call.operand(0), dtype)


def _converted(call: OnnxCall, x: Operand, dtype: DType) -> Operand:
    if x.type.dtype == dtype:
        return x
    if is_float(dtype) and bits(dtype) == 8 and call.int_attr("saturate", 1):
        low, high = smallest_and_largest(dtype)
        wide = x if is_float(x.type.dtype) else call.add("astype", x, dtype="float32")
        x = call.add("clip", wide, min=low, max=high)
    return call.add("astype", x, dtype=dtype)
