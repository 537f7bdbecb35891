"""Convolutions of images.

Weights are `[co, ci / groups, *kernel]` if channels come first, and `[*kernel, ci / groups, co]`
if they come last.
"""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import bias_operand, build, operand
from compiler.ops.error import Numbers, OperatorError, check_extents, spread
from compiler.ops.operator import operator
from compiler.ops.recognizers.windows import convolutions
from compiler.ops.references import convolution as references
from compiler.ops.tensors import convolution as tensors
from compiler.ops.tensors import transposed_convolution as transposed
from compiler.ops.tensors.windows import SPACE, channel_axis, shaped


@operator(tensors.conv1d, reference=references.conv, recognize=convolutions)
def conv1d(  # noqa: PLR0917
    n: int,
    ci: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, w]` with `W[co, ci / groups, kernel]`; arguments as `conv2d` has them.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    shape = (n, ci, w)
    inputs = _inputs("conv1d", shape, co, kernel, groups, layout, dtype, bias=bias)
    output = tensors.conv1d(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("conv1d", inputs, output)


@operator(tensors.conv2d, reference=references.conv, recognize=convolutions)
def conv2d(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, h, w]` with `W[co, ci / groups, kernel, kernel]`.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel: one number for both, or two.
        stride: The step between windows, in elements.
        padding: The number of zeros on each side; or above and below, left and right; or
            above, left, below, right.
        dilation: The step between the elements of a window.
        groups: The number of groups of channels; a group sees only its own.
        dtype: The type of image and weights.
        layout: "NCHW"; or "NHWC", where the weights are `W[kernel, kernel, ci / groups, co]`.
        bias: Whether `bias[co]` is added.
        activation: The function applied last, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    shape = (n, ci, h, w)
    inputs = _inputs("conv2d", shape, co, kernel, groups, layout, dtype, bias=bias)
    output = tensors.conv2d(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("conv2d", inputs, output)


@operator(tensors.conv3d, reference=references.conv, recognize=convolutions)
def conv3d(  # noqa: PLR0917
    n: int,
    ci: int,
    d: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCDHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, d, h, w]` with `W[co, ci / groups, *kernel]`; arguments as `conv2d`'s.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    shape = (n, ci, d, h, w)
    inputs = _inputs("conv3d", shape, co, kernel, groups, layout, dtype, bias=bias)
    output = tensors.conv3d(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("conv3d", inputs, output)


@operator(tensors.depthwise_conv2d, reference=references.depthwise, recognize=convolutions)
def depthwise_conv2d(  # noqa: PLR0917
    n: int,
    c: int,
    h: int,
    w: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    dtype: DType = "float32",
    *,
    multiplier: int = 1,
    layout: str = "NCHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve each channel of `A[n, c, h, w]` with its own kernels in `W[c, multiplier, k, k]`.

    Args:
        n: The batch size.
        c: The number of channels.
        h: The height of the input.
        w: The width of the input.
        kernel: The height and width of the kernel.
        stride: The step between windows.
        padding: The number of zeros on each side.
        dilation: The step between the elements of a window.
        dtype: The type of image and weights.
        multiplier: The number of output channels of an input channel.
        layout: "NCHW"; or "NHWC", where the weights are `W[k, k, c, multiplier]`.
        bias: Whether `bias[c * multiplier]` is added.
        activation: The function applied last, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    name = "depthwise_conv2d"
    check_extents(name, n=n, c=c, h=h, w=w, multiplier=multiplier)
    axis = channel_axis(name, layout, 2)
    kernels = spread(name, "kernel", kernel, 2, 1)
    weights = (c, multiplier, *kernels) if axis == 1 else (*kernels, c, multiplier)
    inputs = [
        operand(shaped(axis, n, c, (h, w)), dtype, "A"),
        operand(weights, dtype, "W"),
        *bias_operand(name, c * multiplier, dtype, bias=bias),
    ]
    output = tensors.depthwise_conv2d(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build(name, inputs, output)


@operator(transposed.conv2d_transpose, reference=references.conv_transpose)
def conv2d_transpose(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dtype: DType = "float32",
    *,
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Spread `A[n, ci, h, w]` by `W[ci, co, kernel, kernel]`: the gradient of a convolution.

    The image is dilated by the stride and padded, then convolved with the reversed kernel.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel.
        stride: The step between the windows of the result.
        padding: The number of elements cut off on each side of the result.
        output_padding: The number of elements added below and on the right; fewer than the stride.
        dtype: The type of image and weights.
        bias: Whether `bias[co]` is added.
        activation: The function applied last, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    name = "conv2d_transpose"
    check_extents(name, n=n, ci=ci, h=h, w=w, co=co)
    kernels = spread(name, "kernel", kernel, 2, 1)
    inputs = [
        operand((n, ci, h, w), dtype, "A"),
        operand((ci, co, *kernels), dtype, "W"),
        *bias_operand(name, co, dtype, bias=bias),
    ]
    output = transposed.conv2d_transpose(
        *inputs,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build(name, inputs, output)


def _inputs(  # noqa: PLR0917
    name: str,
    shape: tuple[int, ...],
    co: int,
    kernel: Numbers,
    groups: int,
    layout: str,
    dtype: DType,
    *,
    bias: bool,
) -> list[te.Tensor]:
    """Return the inputs of a convolution; `shape` is that of the image, channels first."""
    image, kernels = image_and_kernels(name, shape, co, kernel, groups, layout)
    return [
        operand(image, dtype, "A"),
        operand(kernels, dtype, "W"),
        *bias_operand(name, co, dtype, bias=bias),
    ]


def image_and_kernels(  # noqa: PLR0917
    name: str, shape: tuple[int, ...], co: int, kernel: Numbers, groups: int, layout: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the image and of the weights of a convolution in a layout.

    Args:
        name: The operator, for errors.
        shape: The shape of the image, channels first.
        co: The number of output channels.
        kernel: The extents of the kernel.
        groups: The number of groups of channels.
        layout: The order of the dimensions.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    n, ci, *space = shape
    extents = {letter[0]: size for letter, size in zip(SPACE[len(space)], space, strict=True)}
    check_extents(name, n=n, ci=ci, co=co, groups=groups, **extents)
    if ci % groups or co % groups:
        raise OperatorError(
            f"{name}: {groups} groups do not divide {ci} input and {co} output channels"
        )
    axis = channel_axis(name, layout, len(space))
    kernels = spread(name, "kernel", kernel, len(space), 1)
    inner = ci // groups
    weights = (co, inner, *kernels) if axis == 1 else (*kernels, inner, co)
    return shaped(axis, n, ci, space), weights
