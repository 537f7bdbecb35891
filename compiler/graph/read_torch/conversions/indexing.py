"""Operators that read elements at indices."""

from __future__ import annotations

from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


@aten("embedding.default")
def _embedding(call: TorchCall) -> Operand:
    return call.add("take", call.operand("weight"), call.operand("indices"), axis=0)


@aten("index_select.default")
def _index_select(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = call.integer("dim") % x.type.rank
    result = call.add("take", x, call.operand("index"), axis=axis)
    return call.reshaped(result, call.result().static_shape)


@aten("gather.default")
def _gather(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = call.integer("dim") % x.type.rank
    return call.add("gather_elements", x, call.operand("index"), axis=axis)
