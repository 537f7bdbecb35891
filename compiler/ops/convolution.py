"""Convolutions over images in NCHW layout, padded by a block of its own."""

from __future__ import annotations

from compiler import te
from compiler.ir.dtypes import DType
from compiler.ir.nodes import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import OperatorError, check_dtype, check_extents, check_range


def conv2d(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = "float32",
) -> PrimFunc:
    """Convolve `A[n, ci, h, w]` with `W[co, ci / groups, kernel, kernel]`.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel.
        stride: The step between windows, in elements.
        padding: How many zeros are put on each side.
        dilation: The step between the elements of a window.
        groups: How many groups the channels are split into; a group sees only its own.
        dtype: The type of all tensors.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    check_extents("conv2d", n=n, ci=ci, h=h, w=w, co=co, groups=groups)
    _check_window("conv2d", h, w, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    check_dtype("conv2d", dtype)
    if ci % groups or co % groups:
        raise OperatorError(
            f"conv2d: {groups} groups do not divide {ci} input and {co} output channels"
        )
    a = te.placeholder((n, ci, h, w), dtype, name="A")
    weights = te.placeholder((co, ci // groups, kernel, kernel), dtype, name="W")
    padded = _pad(a, padding)
    oh, ow = (_windows(x, kernel, stride, padding, dilation) for x in (h, w))
    rc = te.reduce_axis((0, ci // groups), name="rc")
    ry = te.reduce_axis((0, kernel), name="ry")
    rx = te.reduce_axis((0, kernel), name="rx")

    def element(nn: te.Value, ff: te.Value, yy: te.Value, xx: te.Value) -> te.Reduction:
        channel = rc if groups == 1 else ff // (co // groups) * (ci // groups) + rc
        y = _scaled(yy, stride) + _scaled(ry, dilation)
        x = _scaled(xx, stride) + _scaled(rx, dilation)
        return te.sum(padded[nn, channel, y, x] * weights[ff, rc, ry, rx], axis=[rc, ry, rx])

    c = te.compute((n, co, oh, ow), element, name="conv2d_nchw")
    return build("conv2d", [a, weights, c])


def depthwise_conv2d(  # noqa: PLR0917
    n: int,
    c: int,
    h: int,
    w: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    dtype: DType = "float32",
) -> PrimFunc:
    """Convolve each channel of `A[n, c, h, w]` with its own kernel in `W[c, 1, kernel, kernel]`.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    check_extents("depthwise_conv2d", n=n, c=c, h=h, w=w)
    _check_window(
        "depthwise_conv2d", h, w, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )
    check_dtype("depthwise_conv2d", dtype)
    a = te.placeholder((n, c, h, w), dtype, name="A")
    weights = te.placeholder((c, 1, kernel, kernel), dtype, name="W")
    padded = _pad(a, padding)
    oh, ow = (_windows(x, kernel, stride, padding, dilation) for x in (h, w))
    ry = te.reduce_axis((0, kernel), name="ry")
    rx = te.reduce_axis((0, kernel), name="rx")

    def element(nn: te.Value, cc: te.Value, yy: te.Value, xx: te.Value) -> te.Reduction:
        y = _scaled(yy, stride) + _scaled(ry, dilation)
        x = _scaled(xx, stride) + _scaled(rx, dilation)
        return te.sum(padded[nn, cc, y, x] * weights[cc, 0, ry, rx], axis=[ry, rx])

    output = te.compute((n, c, oh, ow), element, name="depthwise_conv2d")
    return build("depthwise_conv2d", [a, weights, output])


def _pad(image: te.Tensor, padding: int) -> te.Tensor:
    """Return the image with `padding` zeros on each side; itself if there are none."""
    if padding == 0:
        return image
    n, c, h, w = image.shape

    def element(i0: te.Value, i1: te.Value, i2: te.Value, i3: te.Value) -> te.Value:
        inside = te.all(
            te.const(padding, "int32") <= i2,
            i2 < h + padding,
            te.const(padding, "int32") <= i3,
            i3 < w + padding,
        )
        return te.if_then_else(inside, image[i0, i1, i2 - padding, i3 - padding], 0)

    return te.compute((n, c, h + 2 * padding, w + 2 * padding), element, name="pad_temp")


def _check_window(
    operator: str, h: int, w: int, *, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    check_extents(operator, kernel=kernel, stride=stride, dilation=dilation)
    check_range(operator, 0, padding=padding)
    reach = dilation * (kernel - 1) + 1
    for name, extent in (("height", h), ("width", w)):
        if reach > extent + 2 * padding:
            raise OperatorError(
                f"{operator}: a window of {reach} elements does not fit into a {name} "
                f"of {extent} with {padding} zeros on each side"
            )


def _windows(extent: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _scaled(index: te.Value, factor: int) -> te.Value:
    return index if factor == 1 else index * factor
