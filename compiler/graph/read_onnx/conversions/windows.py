"""The attributes of convolutions and pools: strides, paddings and dilations of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent
from compiler.graph.nodes import Attr
from compiler.graph.read_onnx.call import OnnxCall


@dataclass(frozen=True, slots=True)
class WindowAttrs:
    """The windows of a node; `padding` has the numbers before each dimension, then those after."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, Attr]:
        """Return the attributes of graph operators."""
        return {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}


def spatial_rank(call: OnnxCall) -> int:
    """Return the number of spatial dimensions of the image, operand 0.

    Raises:
        ModelError: If there is no graph operator for it.
    """
    rank = call.type(0).rank - 2
    if rank not in {1, 2, 3}:
        raise ModelError(
            f"the image has shape {call.type(0).shape}: expected 1 to 3 spatial dimensions"
        )
    return rank


def window_attrs(call: OnnxCall, kernel: Sequence[int]) -> WindowAttrs:
    """Return the windows that a node describes by its attributes.

    Raises:
        ModelError: If the attributes do not fit the image, operand 0.
    """
    rank = spatial_rank(call)
    space = call.type(0).shape[2:]
    strides = _numbers(call, "strides", (1,) * rank)
    dilation = _numbers(call, "dilations", (1,) * rank)
    mode = call.string_attr("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return WindowAttrs(strides, _numbers(call, "pads", (0, 0) * rank), dilation)
    if mode == "VALID":
        return WindowAttrs(strides, (0, 0) * rank, dilation)
    if len(kernel) != rank or mode not in {"SAME_UPPER", "SAME_LOWER"}:
        raise ModelError(f"auto_pad is {mode!r}, the kernel {tuple(kernel)}")
    sides = [
        _same_padding(call, space[axis], strides[axis], dilation[axis] * (kernel[axis] - 1) + 1)
        for axis in range(rank)
    ]
    ordered = [side if mode == "SAME_UPPER" else side[::-1] for side in sides]
    return WindowAttrs(
        strides,
        tuple(before for before, _ in ordered) + tuple(after for _, after in ordered),
        dilation,
    )


def _same_padding(call: OnnxCall, size: Extent, stride: int, reach: int) -> tuple[int, int]:
    """Return the padding for which there are as many windows as strides begin in the image.

    Returns:
        The smaller half, and the larger one.

    Raises:
        ModelError: If it depends on a symbolic extent.
    """
    if isinstance(size, int):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    elif stride == 1:
        total = reach - 1
    else:
        raise ModelError(
            f"auto_pad over the symbolic extent {size}",
            advice="fix the axes of the model's inputs: shapes={...}",
        )
    return total // 2, total - total // 2


def _numbers(call: OnnxCall, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    numbers = call.ints_attr(name, default)
    if len(numbers) != len(default):
        raise ModelError(f"{name} is {numbers}: expected {len(default)} numbers")
    return numbers
