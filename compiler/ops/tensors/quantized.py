"""Operators on quantized values: integers that stand for `scale * (value - zero_point)`.

The sums of products of bytes have 32 bits. They are scaled to bytes again, each channel by its own
factor: the scales of both operands over that of the result. Zero points of weights are 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.analysis.small_integers import LARGEST
from compiler.ir.core.dtypes import DType, smallest_and_largest
from compiler.ops.error import Numbers, OperatorError, check_axis
from compiler.ops.tensors.convolution import conv2d
from compiler.ops.tensors.linear import dense
from compiler.ops.tensors.operands import BYTES, check_dims, dims_of
from compiler.ops.tensors.windows import channel_axis, pad, paddings, shaped


def requantize(
    x: te.Tensor,
    scale: te.Tensor,
    *,
    axis: int = -1,
    zero_point: int = 0,
    out_dtype: DType = "int8",
) -> te.Tensor:
    """Return `round(x * scale) + zero_point` as bytes, with values out of range at its ends.

    The product is one of float32. Halves are rounded to the even integer.

    Args:
        x: Sums in int32.
        scale: A factor for each index of the axis, in float32.
        axis: The axis of the factors, such as that of the channels.
        zero_point: The byte that stands for zero.
        out_dtype: The type of the result, "int8" or "uint8".

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "requantize"
    dims = dims_of(operator, x)
    axis = check_axis(operator, axis, len(dims))
    check_type(operator, x.dtype, ("int32",))
    check_type(operator, scale.dtype, ("float32",))
    check_dims(operator, scale, (dims[axis],))
    check_zero_points(operator, out_dtype, zero_point=zero_point)
    low, high = smallest_and_largest(out_dtype)

    def element(*i: te.Value) -> te.Value:
        rounded = te.round(x[i].astype("float32") * scale[i[axis]])
        shifted = rounded + float(zero_point) if zero_point else rounded
        return te.max(te.min(shifted, float(high)), float(low)).astype(out_dtype)

    return te.compute(dims, element, name="requantized")


def quantized_dense(
    x: te.Tensor,
    weight: te.Tensor,
    scale: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    input_zero_point: int = 0,
    zero_point: int = 0,
    out_dtype: DType | None = None,
    reduce_range: bool = False,
) -> te.Tensor:
    """Return `(x[m, k] - input_zero_point) @ weight[n, k].T`, requantized.

    Args:
        x: Bytes.
        weight: Bytes, int8 or uint8.
        scale: `[n]`, the factor of each column; see `requantize`.
        bias: `[n]` in int32, added to the sums.
        input_zero_point: The byte of `x` that stands for zero.
        zero_point: That of the result.
        out_dtype: The type of the result; by default that of `x`.
        reduce_range: Whether bytes of `x` above 127 count as 127; see `ops.quantized_dense`.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "quantized_dense"
    _check_operands(operator, x, weight, bias, input_zero_point)
    dtype = out_dtype or x.dtype
    if reduce_range:
        x = _reduced(operator, x, input_zero_point)
    total = dense(x, weight, bias, out_dtype="int32")
    if input_zero_point:
        n, k = dims_of(operator, weight, 2)
        axis = te.reduce_axis((0, k), name="k")
        sums = te.compute(
            (n,), lambda j: te.sum(weight[j, axis].astype("int32"), axis=axis), name="weight_sums"
        )
        total = _without_zero_point(total, 1, sums, input_zero_point)
    return requantize(total, scale, zero_point=zero_point, out_dtype=dtype)


def quantized_conv2d(
    data: te.Tensor,
    weight: te.Tensor,
    scale: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "NCHW",
    input_zero_point: int = 0,
    zero_point: int = 0,
    out_dtype: DType | None = None,
    reduce_range: bool = False,
) -> te.Tensor:
    """Convolve `data - input_zero_point` with `weight`, requantized by channel.

    The image is padded with its zero point. Other arguments as `conv2d` and `quantized_dense` have
    them.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "quantized_conv2d"
    axis = channel_axis(operator, layout, 2)
    _check_operands(operator, data, weight, bias, input_zero_point)
    dtype = out_dtype or data.dtype
    if reduce_range:
        data = _reduced(operator, data, input_zero_point)
    dims = dims_of(operator, data, 4)
    sides = (shaped(axis, 0, 0, side) for side in paddings(operator, padding, 2))
    zero = te.const(input_zero_point, data.dtype)
    total = conv2d(
        pad(data, dims, *sides, value=zero),
        weight,
        bias,
        stride=stride,
        dilation=dilation,
        groups=groups,
        layout=layout,
        out_dtype="int32",
    )
    if input_zero_point:
        sums = _kernel_sums(weight, is_first=axis == 1)
        total = _without_zero_point(total, axis, sums, input_zero_point)
    return requantize(total, scale, axis=axis, zero_point=zero_point, out_dtype=dtype)


def check_type(operator: str, dtype: DType, expected: Sequence[DType]) -> None:
    """Refuse another type than the expected ones.

    Raises:
        OperatorError: Naming the type.
    """
    if dtype not in expected:
        raise OperatorError(
            f"{operator}: type {dtype!r} is not supported: expected {' or '.join(expected)}"
        )


def check_zero_points(operator: str, dtype: DType, **points: object) -> None:
    """Refuse a zero point that is no value of a type of bytes.

    Raises:
        OperatorError: Naming the type or the zero point.
    """
    check_type(operator, dtype, BYTES)
    low, high = smallest_and_largest(dtype)
    for name, point in points.items():
        if isinstance(point, bool) or not isinstance(point, int) or not low <= point <= high:
            raise OperatorError(f"{operator}: {name} is {point!r}: expected {low} to {high}")


def _check_operands(
    operator: str, x: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, zero_point: int
) -> None:
    check_zero_points(operator, x.dtype, input_zero_point=zero_point)
    check_type(operator, weight.dtype, BYTES)
    if bias is not None:
        check_type(operator, bias.dtype, ("int32",))


def _reduced(operator: str, x: te.Tensor, zero_point: int) -> te.Tensor:
    """Return bytes with values above 127 replaced by it."""
    check_type(operator, x.dtype, ("uint8",))
    if zero_point > LARGEST:
        raise OperatorError(
            f"{operator}: input_zero_point is {zero_point}: expected 0 to {LARGEST} with"
            " reduce_range"
        )
    largest = te.const(LARGEST, x.dtype)
    return te.compute(x.shape, lambda *i: te.min(x[i], largest), name="reduced")


def _kernel_sums(weight: te.Tensor, *, is_first: bool) -> te.Tensor:
    """Return the sum of the weights of each output channel."""
    dims = dims_of("quantized_conv2d", weight)
    inner = dims[1:] if is_first else dims[:-1]
    axes = [te.reduce_axis((0, extent), name=f"r{n}") for n, extent in enumerate(inner)]

    def element(ff: te.Value) -> te.Reduction:
        index = (ff, *axes) if is_first else (*axes, ff)
        return te.sum(weight[index].astype("int32"), axis=axes)

    return te.compute((dims[0] if is_first else dims[-1],), element, name="weight_sums")


def _without_zero_point(
    total: te.Tensor, axis: int, weight_sums: te.Tensor, zero_point: int
) -> te.Tensor:
    """Return sums of products without what the zero point of an operand adds to them.

    The sums of weights are read first, so that they are computed before the products, and an
    epilogue may follow each tile of these.
    """
    return te.compute(
        total.shape, lambda *i: weight_sums[i[axis]] * -zero_point + total[i], name="shifted"
    )
