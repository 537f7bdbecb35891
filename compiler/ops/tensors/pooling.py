"""Max and average pooling over windows of an image."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import sum_dtype
from compiler.ops.error import Numbers, OperatorError, check_dtype, check_flags
from compiler.ops.tensors.operands import dims_of
from compiler.ops.tensors.windows import (
    Windows,
    arranged,
    channel_axis,
    pad,
    shaped,
    split,
    windows,
)

_AXES = ("ax0", "ax1", "ax2", "ax3")


def max_pool2d(
    data: te.Tensor,
    *,
    kernel: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> te.Tensor:
    """Return the largest element of each window of `data[n, c, h, w]`.

    Args:
        data: The image.
        kernel: The height and width of a window.
        stride: The step between windows; by default the size of a window.
        padding: The number of elements, smaller than any, on each side.
        dilation: The step between the elements of a window.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If the shape, the type or an option does not fit.
    """
    operator = "max_pool2d"
    check_dtype(operator, data.dtype)
    axis = channel_axis(operator, layout, 2)
    space = split(dims_of(operator, data, 4), axis)[2]
    window = _windows(operator, space, kernel, stride, padding, dilation, ceil_mode)
    padded, steps = _padded(data, axis, window, te.min_value(data.dtype))

    def element(*index: te.Value) -> te.Reduction:
        nn, cc, at = split(index, axis)
        return te.max(padded[arranged(axis, nn, cc, window.places(at, steps))], axis=steps)

    shape = _result_shape(data, axis, window)
    return te.compute(shape, element, name="pool_max", varargs_names=_AXES)


def avg_pool2d(
    data: te.Tensor,
    *,
    kernel: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> te.Tensor:
    """Return the mean of each window of `data[n, c, h, w]`; options as `max_pool2d` has them.

    Args:
        data: The image.
        kernel: The height and width of a window.
        stride: The step between windows; by default the size of a window.
        padding: The number of zeros on each side.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that;
            elements beyond the padding do not count.
        count_include_pad: Whether the padding counts among the elements of a window.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If the shape, the type or an option does not fit.
    """
    operator = "avg_pool2d"
    check_dtype(operator, data.dtype, needs_float=True)
    check_flags(operator, count_include_pad=count_include_pad)
    axis = channel_axis(operator, layout, 2)
    space = split(dims_of(operator, data, 4), axis)[2]
    window = _windows(operator, space, kernel, stride, padding, 1, ceil_mode)
    margins = windows(operator, space, kernel, window.stride, padding, 1)
    padded, steps = _padded(data, axis, window, 0)
    dtype = sum_dtype(data.dtype)

    def total(*index: te.Value) -> te.Reduction:
        nn, cc, at = split(index, axis)
        image = padded[arranged(axis, nn, cc, window.places(at, steps))]
        return te.sum(image.astype(dtype), axis=steps)

    def mean(*index: te.Value) -> te.Value:
        counts = [
            _count(start, dimension, window, margins, include_pad=count_include_pad)
            for dimension, start in enumerate(split(index, axis)[2])
        ]
        count = counts[0] * counts[1]
        if isinstance(count, te.Value):
            return (sums[index] / count.astype(dtype)).astype(data.dtype)
        return (sums[index] / float(count)).astype(data.dtype)

    shape = _result_shape(data, axis, window)
    sums = te.compute(shape, total, name="pool_sum", varargs_names=_AXES)
    return te.compute(shape, mean, name="pool_avg", varargs_names=_AXES)


def _windows(  # noqa: PLR0917
    operator: str,
    space: Sequence[int],
    kernel: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
) -> Windows:
    check_flags(operator, ceil_mode=ceil_mode)
    step = kernel if stride is None else stride
    window = windows(operator, space, kernel, step, padding, dilation, ceil_mode=ceil_mode)
    if any(2 * b > k for b, k in zip(window.before, window.kernel, strict=True)):
        raise OperatorError(
            f"{operator}: padding is {window.before}: expected at most half of the kernel, "
            f"which is {window.kernel}"
        )
    return window


def _padded(
    data: te.Tensor, axis: int, window: Windows, value: te.Value | float
) -> tuple[te.Tensor, list[te.ReduceAxis]]:
    """Return the padded image and the axes over a window."""
    before, after = (shaped(axis, 0, 0, side) for side in (window.before, window.after))
    padded = pad(data, dims_of("pool", data), before, after, value=value)
    steps = [te.reduce_axis((0, k), name=f"rv{n}") for n, k in enumerate(window.kernel)]
    return padded, steps


def _result_shape(data: te.Tensor, axis: int, window: Windows) -> tuple[int, ...]:
    batch, channels, _ = split(dims_of("pool", data), axis)
    return shaped(axis, batch, channels, window.count)


def _count(
    start: te.Value, dimension: int, window: Windows, margins: Windows, *, include_pad: bool
) -> te.Value | int:
    """Return the number of elements of a window that count, in one dimension."""
    kernel, size = window.kernel[dimension], window.sizes[dimension]
    stride, first = window.stride[dimension], window.before[dimension]
    last = margins.after[dimension] if include_pad else 0
    # Both ends are relative to the first element of the image.
    begin = start * stride - first
    leaves_end = (window.count[dimension] - 1) * stride - first + kernel > size + last
    if include_pad or first == 0:
        return te.min(begin + kernel, size + last) - begin if leaves_end else kernel
    end = te.min(begin + kernel, size + last) if leaves_end else begin + kernel
    return end - te.max(begin, 0)
