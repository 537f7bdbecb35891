"""Windows that slide over images: their layouts, sizes and paddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from compiler import te
from compiler.ops.error import (
    Numbers,
    OperatorError,
    check_choice,
    check_extents,
    check_range,
    spread,
)

T = TypeVar("T")

LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
SPACE = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over the spatial dimensions of an image.

    Attributes:
        sizes: The extents of the image.
        kernel: The extents of a window.
        stride: The steps between windows.
        dilation: The steps between the elements of a window.
        before: The number of elements before the image.
        after: The number of elements after it.
        count: The number of windows in each dimension.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    count: tuple[int, ...]

    def places(self, at: Sequence[te.Value], inside: Sequence[te.Value]) -> list[te.Value]:
        """Return the index in the padded image of an element of a window."""
        parts = zip(at, inside, self.stride, self.dilation, strict=True)
        return [start * stride + step * dilation for start, step, stride, dilation in parts]


def windows(  # noqa: PLR0917
    operator: str,
    sizes: Sequence[int],
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    *,
    ceil_mode: bool = False,
) -> Windows:
    """Return the windows that fit into a padded image.

    Args:
        operator: The name for errors.
        sizes: The extents of the image.
        kernel: The extents of a window.
        stride: The steps between windows.
        padding: The number of elements on each side: one number for all dimensions; one for each
            dimension; or those before each dimension, then those after.
        dilation: The steps between the elements of a window.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that.

    Raises:
        OperatorError: If a number is out of range, or no window fits.
    """
    ndim = len(sizes)
    names = SPACE[ndim]
    check_extents(operator, **{name[0]: n for name, n in zip(names, sizes, strict=True)})
    kernels = spread(operator, "kernel", kernel, ndim, 1)
    strides = spread(operator, "stride", stride, ndim, 1)
    dilations = spread(operator, "dilation", dilation, ndim, 1)
    before, after = paddings(operator, padding, ndim)
    count: list[int] = []
    for axis, name in enumerate(names):
        reach = dilations[axis] * (kernels[axis] - 1) + 1
        padded = sizes[axis] + before[axis] + after[axis]
        if reach > padded:
            raise OperatorError(
                f"{operator}: a window of {reach} elements does not fit into a {name} "
                f"of {sizes[axis]} with {before[axis]} zeros on each side"
            )
        remainder = padded - reach
        number = (-(-remainder // strides[axis]) if ceil_mode else remainder // strides[axis]) + 1
        if ceil_mode and (number - 1) * strides[axis] >= sizes[axis] + before[axis]:
            number -= 1
        count.append(number)
    # Pad as far as the last window reaches beyond the given padding.
    ends = zip(count, kernels, strides, dilations, sizes, before, after, strict=True)
    reached = tuple(
        max(last, (number - 1) * step + gap * (extent - 1) + 1 - size - first)
        for number, extent, step, gap, size, first, last in ends
    )
    return Windows(tuple(sizes), kernels, strides, dilations, before, reached, tuple(count))


def pad(
    image: te.Tensor,
    shape: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    *,
    value: te.Value | float = 0,
    name: str = "pad_temp",
) -> te.Tensor:
    """Return an image padded with a value; the image itself if the padding is empty."""
    if not any(before) and not any(after):
        return image

    def element(*i: te.Value) -> te.Value:
        conditions = [
            condition
            for index, first, size, last in zip(i, before, shape, after, strict=True)
            for condition in _inside(index, first, size, last)
        ]
        source = tuple(index - first for index, first in zip(i, before, strict=True))
        return te.if_then_else(te.all(*conditions), image[source], value)

    extents = [b + n + a for b, n, a in zip(before, shape, after, strict=True)]
    return te.compute(extents, element, name=name)


def _inside(index: te.Value, first: int, size: int, last: int) -> list[te.Value]:
    if not first and not last:
        return []
    return [te.const(first, "int32") <= index, index < size + first]


def channel_axis(operator: str, layout: str, ndim: int) -> int:
    """Return the axis of the channels in a layout.

    Raises:
        OperatorError: If the layout does not exist for that number of dimensions.
    """
    check_choice(operator, "layout", layout, LAYOUTS[ndim])
    return layout.index("C")


def arranged(
    layout_axis: int, first: te.Value | int, channel: te.Value | int, space: Sequence[te.Value]
) -> tuple[te.Value | int, ...]:
    """Return indices of an image in the order of its layout."""
    return (first, channel, *space) if layout_axis == 1 else (first, *space, channel)


def split(index: Sequence[T], layout_axis: int) -> tuple[T, T, Sequence[T]]:
    """Return the parts of an index or a shape in a layout: batch, channel, space."""
    space = index[2:] if layout_axis == 1 else index[1:-1]
    return index[0], index[layout_axis], space


def shaped(layout_axis: int, first: int, channels: int, space: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of an image in the order of its layout."""
    return (first, channels, *space) if layout_axis == 1 else (first, *space, channels)


def paddings(operator: str, padding: Numbers, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of elements before and after each dimension; see `windows`.

    Raises:
        OperatorError: If a number is out of range.
    """
    if isinstance(padding, Sequence) and len(padding) == 2 * ndim:
        for number in padding:
            check_range(operator, 0, padding=number)
        return tuple(padding[:ndim]), tuple(padding[ndim:])
    both = spread(operator, "padding", padding, ndim, 0)
    return both, both
