"""Max and average pooling over windows of an image."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import Numbers, check_extents
from compiler.ops.operator import operator
from compiler.ops.recognizers.windows import pools
from compiler.ops.references import pooling as references
from compiler.ops.tensors import pooling as tensors
from compiler.ops.tensors.windows import channel_axis, shaped


@operator(tensors.max_pool2d, reference=references.max_pool, recognize=pools)
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
        stride: The step between windows; by default the size of a window.
        padding: The number of elements, smaller than any, on each side.
        dilation: The step between the elements of a window.
        dtype: The type of the image.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    image = _image("max_pool2d", (n, c, h, w), layout, dtype)
    output = tensors.max_pool2d(
        image,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        layout=layout,
    )
    return build("max_pool2d", [image], output)


@operator(tensors.avg_pool2d, reference=references.avg_pool, recognize=pools)
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
        stride: The step between windows; by default the size of a window.
        padding: The number of zeros on each side.
        dtype: The type of the image.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that;
            elements beyond the padding do not count.
        count_include_pad: Whether the padding counts among the elements of a window.
        layout: "NCHW" or "NHWC".

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    image = _image("avg_pool2d", (n, c, h, w), layout, dtype)
    output = tensors.avg_pool2d(
        image,
        kernel=kernel,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
    )
    return build("avg_pool2d", [image], output)


def _image(name: str, shape: tuple[int, int, int, int], layout: str, dtype: DType) -> te.Tensor:
    """Return the image; `shape` has its channels first."""
    n, c, h, w = shape
    check_extents(name, n=n, c=c, h=h, w=w)
    return operand(shaped(channel_axis(name, layout, 2), n, c, (h, w)), dtype, "A")
