"""Matrix products."""

from __future__ import annotations

from compiler.graph.nodes import Constant, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator


@onnx_operator("MatMul")
def _matmul(call: OnnxCall) -> Operand:
    return call.add("matmul", call.operand(0), call.operand(1))


@onnx_operator("Gemm")
def _gemm(call: OnnxCall) -> Operand:
    a, b = (_transposed(call, k, name) for k, name in ((0, "transA"), (1, "transB")))
    alpha = call.float_attr("alpha", 1.0)
    if isinstance(b, Constant):
        # Scaled weights are constants; a scaled product costs an operation an element.
        return _with_addend(call, call.add("matmul", a, _scaled(call, b, alpha)))
    return _with_addend(call, _scaled(call, call.add("matmul", a, b), alpha))


def _transposed(call: OnnxCall, position: int, attribute: str) -> Operand:
    operand = call.operand(position)
    is_transposed = bool(call.int_attr(attribute, 0))
    return call.add("permute_dims", operand, axes=(1, 0)) if is_transposed else operand


def _scaled(call: OnnxCall, operand: Operand, factor: float) -> Operand:
    return operand if factor == 1 else call.add("multiply", operand, call.like(operand, factor))


def _with_addend(call: OnnxCall, total: Operand) -> Operand:
    addend, beta = call.optional(2), call.float_attr("beta", 1.0)
    if addend is None or beta == 0:
        return total
    return call.add("add", total, _scaled(call, addend, beta))
