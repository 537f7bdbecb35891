"""Convolutions."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.windows import spatial_rank, window_attrs
from compiler.graph.read_onnx.registry import onnx_operator


@onnx_operator("Conv")
def _conv(call: OnnxCall) -> Operand:
    rank = spatial_rank(call)
    kernel = call.static_type(1).static_shape[2:]
    check_kernel_shape(call, kernel)
    windows = window_attrs(call, kernel).attrs
    total = call.add(
        f"nn.conv{rank}d",
        call.operand(0),
        call.operand(1),
        groups=call.int_attr("group", 1),
        **windows,
    )
    return with_bias(call, total, call.optional(2))


def with_bias(call: OnnxCall, total: Operand, bias: Operand | None) -> Operand:
    """Return the sum of a convolution and a bias of its channels, if there is one."""
    if bias is None:
        return total
    shape = (-1, *[1] * (total.type.rank - 2))
    return call.add("add", total, call.add("reshape", bias, shape=shape))


def check_kernel_shape(call: OnnxCall, kernel: tuple[int, ...]) -> None:
    """Refuse an attribute `kernel_shape` that differs from the weights.

    Raises:
        ModelError: Naming both.
    """
    given = call.ints_attr("kernel_shape", kernel)
    if given != kernel:
        raise ModelError(f"kernel_shape is {given}, but the weights have {kernel}")
