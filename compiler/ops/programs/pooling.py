"""The largest or the mean of each window of an image."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import Numbers, OperatorError, check_dtype, check_extents, check_flags
from compiler.ops.tensors.windows import (
    Windows,
    arranged,
    channel_axis,
    pad,
    shaped,
    split,
    windows,
)


def max_pool2d(  # noqa: PLR0917
    n: int,
    c: int,
    h: int,
    w: int,
    kernel: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    dtype: DType = "float32",
    *,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> PrimFunc:
    """Take the largest element of each window of `A[n, c, h, w]`.

    Args:
        n: The batch size.
        c: The number of channels.
        h: The height of the input.
        w: The width of the input.
        kernel: The height and width of a window.
        stride: The step between windows; the size of a window unless it is given.
        padding: How many elements, smaller than any, are put on each side.
        dilation: The step between the elements of a window.
        dtype: The type of the image.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    operator = "max_pool2d"
    check_dtype(operator, dtype)
    window = _windows(operator, (n, c, h, w), kernel, stride, padding, dilation, ceil_mode)
    axis = channel_axis(operator, layout, 2)
    a, padded, steps = _image((n, c, h, w), axis, window, dtype, te.min_value(dtype))

    def element(*place: te.Value) -> te.Reduction:
        nn, cc, at = split(place, axis)
        return te.max(padded[arranged(axis, nn, cc, window.places(at, steps))], axis=steps)

    shape = shaped(axis, n, c, window.count)
    return build(operator, [a, te.compute(shape, element, name="pool_max", varargs_names=_AXES)])


def avg_pool2d(  # noqa: PLR0917
    n: int,
    c: int,
    h: int,
    w: int,
    kernel: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dtype: DType = "float32",
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> PrimFunc:
    """Take the mean of each window of `A[n, c, h, w]`; arguments as `max_pool2d` has them.

    Args:
        n: The batch size.
        c: The number of channels.
        h: The height of the input.
        w: The width of the input.
        kernel: The height and width of a window.
        stride: The step between windows; the size of a window unless it is given.
        padding: How many zeros are put on each side.
        dtype: The type of the image.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that;
            what it reaches does not count.
        count_include_pad: Whether the padding counts among the elements of a window.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    operator = "avg_pool2d"
    check_dtype(operator, dtype, needs_float=True)
    check_flags(operator, count_include_pad=count_include_pad)
    window = _windows(operator, (n, c, h, w), kernel, stride, padding, 1, ceil_mode)
    margins = windows(operator, (h, w), kernel, window.stride, padding, 1)
    axis = channel_axis(operator, layout, 2)
    a, padded, steps = _image((n, c, h, w), axis, window, dtype, 0)

    def total(*place: te.Value) -> te.Reduction:
        nn, cc, at = split(place, axis)
        return te.sum(padded[arranged(axis, nn, cc, window.places(at, steps))], axis=steps)

    def mean(*place: te.Value) -> te.Value:
        at = split(place, axis)[2]
        counts = [
            _count(start, number, window, margins, include_pad=count_include_pad)
            for number, start in enumerate(at)
        ]
        count = counts[0] * counts[1]
        if isinstance(count, te.Value):
            return sums[place] / count.astype(dtype)
        return sums[place] / float(count)

    shape = shaped(axis, n, c, window.count)
    sums = te.compute(shape, total, name="pool_sum", varargs_names=_AXES)
    means = te.compute(shape, mean, name="pool_avg", varargs_names=_AXES)
    return build(operator, [a, means])


_AXES = ("ax0", "ax1", "ax2", "ax3")


def _windows(  # noqa: PLR0917
    operator: str,
    shape: Sequence[int],
    kernel: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
) -> Windows:
    n, c, h, w = shape
    check_extents(operator, n=n, c=c, h=h, w=w)
    check_flags(operator, ceil_mode=ceil_mode)
    step = kernel if stride is None else stride
    found = windows(operator, (h, w), kernel, step, padding, dilation, ceil_mode=ceil_mode)
    if any(2 * b > k for b, k in zip(found.before, found.kernel, strict=True)):
        raise OperatorError(
            f"{operator}: padding is {found.before}: expected at most half of the kernel, "
            f"which is {found.kernel}"
        )
    return found


def _image(
    shape: tuple[int, int, int, int],
    axis: int,
    window: Windows,
    dtype: DType,
    value: te.Value | float,
) -> tuple[te.Tensor, te.Tensor, list[te.ReduceAxis]]:
    """Return the image, the padded image, and the axes over a window."""
    n, c, *space = shape
    arrangement = shaped(axis, n, c, space)
    a = te.placeholder(arrangement, dtype, name="A")
    before, after = (shaped(axis, 0, 0, side) for side in (window.before, window.after))
    padded = pad(a, arrangement, before, after, value=value)
    steps = [te.reduce_axis((0, k), name=f"rv{n}") for n, k in enumerate(window.kernel)]
    return a, padded, steps


def _count(
    start: te.Value, number: int, window: Windows, margins: Windows, *, include_pad: bool
) -> te.Value | int:
    """Return how many elements of a window count in one dimension."""
    kernel, size = window.kernel[number], window.sizes[number]
    first = window.before[number]
    last = margins.after[number] if include_pad else 0
    # Both ends in terms of the image, which begins at 0.
    begin = start * window.stride[number] - first
    leaves_end = (window.count[number] - 1) * window.stride[number] - first + kernel > size + last
    if include_pad or first == 0:
        return te.min(begin + kernel, size + last) - begin if leaves_end else kernel
    end = te.min(begin + kernel, size + last) if leaves_end else begin + kernel
    return end - te.max(begin, 0)
