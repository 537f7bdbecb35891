"""Operators on quantized values: integers that stand for `scale * (value - zero_point)`."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import bias_operand, build, operand
from compiler.ops.error import (
    Numbers,
    check_axis,
    check_extents,
    check_flags,
    check_shape,
)
from compiler.ops.operator import operator
from compiler.ops.programs.convolution import image_and_kernels
from compiler.ops.references import quantized as references
from compiler.ops.tensors import quantized as tensors


@operator(tensors.requantize, reference=references.requantize)
def requantize(
    *shape: int,
    axis: int = -1,
    zero_point: int = 0,
    out_dtype: DType = "int8",
    dtype: DType = "int32",
) -> PrimFunc:
    """`B = A * scale + zero_point` as bytes: rounded, halves to the even, and saturated.

    Args:
        shape: The shape of both.
        axis: The axis with a scale for each index, such as that of the channels.
        zero_point: The byte that stands for zero.
        out_dtype: The type of the result, "int8" or "uint8".
        dtype: The type of the sums, "int32".

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    dims = check_shape("requantize", shape)
    channels = dims[check_axis("requantize", axis, len(dims))]
    inputs = [operand(dims, dtype, "A"), operand((channels,), "float32", "scale")]
    output = tensors.requantize(*inputs, axis=axis, zero_point=zero_point, out_dtype=out_dtype)
    return build("requantize", inputs, output)


@operator(tensors.quantized_dense, reference=references.dense)
def quantized_dense(
    m: int,
    n: int,
    k: int,
    dtype: DType = "uint8",
    *,
    weight_dtype: DType = "int8",
    bias: bool = False,
    input_zero_point: int = 0,
    zero_point: int = 0,
    out_dtype: DType | None = None,
    reduce_range: bool = False,
) -> PrimFunc:
    """`C[m, n] = (A[m, k] - input_zero_point) @ W[n, k].T` of bytes, scaled by column to bytes.

    Args:
        m: The rows of the result.
        n: The columns of the result.
        k: The length of the sums.
        dtype: The type of `A`, "int8" or "uint8".
        weight_dtype: The type of `W`, one of these, too.
        bias: Whether `bias[n]`, in int32, is added to the sums.
        input_zero_point: The byte of `A` that stands for zero.
        zero_point: The byte of `C` that stands for zero.
        out_dtype: The type of `C`; by default that of `A`.
        reduce_range: Whether bytes of `A`, which are unsigned, have 7 bits: larger ones count as
            127. CPUs without dot products of four bytes then multiply them faster.

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    check_extents("quantized_dense", m=m, n=n, k=k)
    check_flags("quantized_dense", reduce_range=reduce_range)
    inputs = [
        operand((m, k), dtype, "A"),
        operand((n, k), weight_dtype, "W"),
        *_channels("quantized_dense", n, bias=bias),
    ]
    output = tensors.quantized_dense(
        *inputs,
        input_zero_point=input_zero_point,
        zero_point=zero_point,
        out_dtype=out_dtype,
        reduce_range=reduce_range,
    )
    return build("quantized_dense", inputs, output)


@operator(tensors.quantized_conv2d, reference=references.conv2d)
def quantized_conv2d(  # noqa: PLR0917
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
    dtype: DType = "uint8",
    *,
    weight_dtype: DType = "int8",
    layout: str = "NCHW",
    bias: bool = False,
    input_zero_point: int = 0,
    zero_point: int = 0,
    out_dtype: DType | None = None,
    reduce_range: bool = False,
) -> PrimFunc:
    """Convolve bytes `A[n, ci, h, w]` as `conv2d` does, scaled by channel to bytes.

    The image is padded with `input_zero_point`. Shapes as `conv2d` has them, the other options as
    `quantized_dense`.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    name = "quantized_conv2d"
    check_flags(name, reduce_range=reduce_range)
    image, kernels = image_and_kernels(name, (n, ci, h, w), co, kernel, groups, layout)
    inputs = [
        operand(image, dtype, "A"),
        operand(kernels, weight_dtype, "W"),
        *_channels(name, co, bias=bias),
    ]
    output = tensors.quantized_conv2d(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        input_zero_point=input_zero_point,
        zero_point=zero_point,
        out_dtype=out_dtype,
        reduce_range=reduce_range,
    )
    return build(name, inputs, output)


def _channels(name: str, extent: int, *, bias: bool) -> list[te.Tensor]:
    """Return the scale of each channel, and its bias if there is one."""
    scale = operand((extent,), "float32", "scale")
    return [scale, *bias_operand(name, extent, "int32", bias=bias)]
