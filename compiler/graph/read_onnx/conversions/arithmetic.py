"""Arithmetic on tensors that are broadcast against each other."""

from __future__ import annotations

from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import Conversion, onnx_operator


def _binary(op: str) -> Conversion:
    def convert(call: OnnxCall) -> Operand:
        return call.add(op, call.operand(0), call.operand(1))

    return convert


onnx_operator("Add")(_binary("add"))
onnx_operator("Sub")(_binary("subtract"))
onnx_operator("Mul")(_binary("multiply"))
