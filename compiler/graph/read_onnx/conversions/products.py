"""Matrix products."""

from __future__ import annotations

from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator


@onnx_operator("MatMul")
def _matmul(call: OnnxCall) -> Operand:
    return call.add("matmul", call.operand(0), call.operand(1))
