"""Transposed convolutions: each element of the image is spread over a window of the result."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import Numbers, OperatorError, spread
from compiler.ops.tensors.epilogue import apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import pad


def conv2d_transpose(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Spread `data[n, ci, h, w]` by `weight[ci, co, kernel, kernel]`.

    The image is dilated by the stride and padded, then convolved with the reversed kernel.

    Args:
        data: The image.
        weight: The kernels.
        bias: `[co]`, added to each channel.
        stride: The step between the windows of the result.
        padding: The number of elements cut off on each side of the result.
        output_padding: The number of elements added below and on the right.
        activation: The function applied last; see `ops.matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "conv2d_transpose"
    types = check_types(operator, data.dtype, out_dtype, acc_dtype)
    check_same_dtype(operator, data, weight)
    n, ci, h, w = dims_of(operator, data, 4)
    _, co, *kernels = dims_of(operator, weight, 4)
    check_dims(operator, weight, (ci, co, *kernels))
    strides = spread(operator, "stride", stride, 2, 1)
    cut = spread(operator, "padding", padding, 2, 0)
    added = spread(operator, "output_padding", output_padding, 2, 0)
    for name, limits, numbers in (
        ("padding", tuple(kernels), cut),
        ("output_padding", strides, added),
    ):
        if any(number >= limit for number, limit in zip(numbers, limits, strict=True)):
            raise OperatorError(f"{operator}: {name} is {numbers}: expected less than {limits}")
    dilated, sizes = _dilated(data, (n, ci, h, w), strides)
    before = [k - 1 - p for k, p in zip(kernels, cut, strict=True)]
    after = [b + o for b, o in zip(before, added, strict=True)]
    padded = pad(dilated, (n, ci, *sizes), (0, 0, *before), (0, 0, *after), name="data_pad")
    reversed_kernel = te.compute(
        (co, ci, *kernels),
        lambda o, i, y, x: weight[i, o, kernels[0] - 1 - y, kernels[1] - 1 - x],
        name="kernel_transform",
    )
    dc = te.reduce_axis((0, ci), name="dc")
    dh, dw = (te.reduce_axis((0, k), name=r) for k, r in zip(kernels, ("dh", "dw"), strict=True))

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Reduction:
        product = types.product(padded[b, dc, y + dh, x + dw], reversed_kernel[c, dc, dh, dw])
        return te.sum(product, axis=[dc, dh, dw])

    extents = zip(sizes, before, after, kernels, strict=True)
    shape = (n, co, *(size + b + e - k + 1 for size, b, e, k in extents))
    total = te.compute(shape, element, name="conv2d_transpose_nchw")
    return apply_epilogue(operator, total, 1, types, bias, activation)


def _dilated(
    image: te.Tensor, shape: tuple[int, ...], strides: Sequence[int]
) -> tuple[te.Tensor, list[int]]:
    """Return an image with zeros between its elements, and its height and width."""
    n, c, *space = shape
    sizes = [(size - 1) * stride + 1 for size, stride in zip(space, strides, strict=True)]
    if sizes == space:
        return image, sizes

    def element(b: te.Value, i: te.Value, y: te.Value, x: te.Value) -> te.Value:
        steps = [(at, s) for at, s in ((y, strides[0]), (x, strides[1])) if s > 1]
        is_one = te.all(*((at % s) == 0 for at, s in steps))
        return te.if_then_else(is_one, image[b, i, y // strides[0], x // strides[1]], 0)

    return te.compute((n, c, *sizes), element, name="data_dilate"), sizes
