"""Convolutions."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.windows import (
    WindowAttrs,
    spatial_rank,
    window_attrs,
)
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


@onnx_operator("ConvTranspose")
def _conv_transpose(call: OnnxCall) -> Operand:
    rank, kernel = spatial_rank(call), call.static_type(1).static_shape[2:]
    check_kernel_shape(call, kernel)
    added = call.ints_attr("output_padding", (0,) * rank)
    windows = window_attrs(call, kernel)
    padding = windows.padding
    mode = call.string_attr("auto_pad", "NOTSET")
    if "output_shape" in call.attributes or mode.startswith("SAME"):
        padding, added = _cut_to(call, kernel, windows, added)
    total = call.add(
        f"nn.conv{rank}d_transpose",
        call.operand(0),
        call.operand(1),
        groups=call.int_attr("group", 1),
        strides=windows.strides,
        dilation=windows.dilation,
        padding=padding,
        output_padding=added,
    )
    return with_bias(call, total, call.optional(2))


def _cut_to(
    call: OnnxCall, kernel: tuple[int, ...], windows: WindowAttrs, added: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding that leaves a result of the wanted extents, and what is added to it."""
    space = call.static_type(0).static_shape[2:]
    default = tuple(n * s for n, s in zip(space, windows.strides, strict=True))
    wanted = call.ints_attr("output_shape", default)[-len(space) :]
    more_at_end = call.string_attr("auto_pad", "NOTSET") == "SAME_UPPER"
    befores, afters, extra = [], [], []
    for axis, size in enumerate(space):
        reach = windows.dilation[axis] * (kernel[axis] - 1) + 1
        excess = (size - 1) * windows.strides[axis] + reach + added[axis] - wanted[axis]
        less, more = max(excess, 0) // 2, (max(excess, 0) + 1) // 2
        befores.append(less if more_at_end else more)
        afters.append(more if more_at_end else less)
        extra.append(added[axis] + max(-excess, 0))
    return (*befores, *afters), tuple(extra)
