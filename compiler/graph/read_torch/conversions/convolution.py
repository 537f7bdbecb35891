"""Convolutions."""

from __future__ import annotations

from compiler.graph.nodes import Attr, Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


@aten("convolution.default")
def _convolution(call: TorchCall) -> Operand:
    data, weight, bias = call.operand("input"), call.operand("weight"), call.optional("bias")
    rank = weight.type.rank - 2
    op = f"nn.conv{rank}d"
    attrs: dict[str, Attr] = {
        "strides": call.spatial("stride", rank),
        "padding": call.spatial("padding", rank) * 2,
        "dilation": call.spatial("dilation", rank),
        "groups": call.integer("groups"),
    }
    if call.flag("transposed"):
        op = f"{op}_transpose"
        attrs["output_padding"] = call.spatial("output_padding", rank)
    result = call.add(op, data, weight, **attrs)
    if bias is None:
        return result
    channels = bias.type.static_shape
    return call.add("add", result, call.reshaped(bias, (*channels, *[1] * rank)))
