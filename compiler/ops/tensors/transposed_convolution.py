"""Transposed convolutions: each element of the image is spread over a window of the result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import Numbers, OperatorError, spread
from compiler.ops.tensors.epilogue import apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import pad

Product: TypeAlias = Callable[[te.Value, te.Value], te.Value]


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

    Results whose positions are equal modulo the stride form a phase. If the stride divides the
    kernel, all phases are channels of one convolution of stride 1, with every stride-th element of
    the kernel, and are interleaved after. Otherwise phases have different numbers of products. So
    each element of the kernel is a channel of one convolution of 1 x 1, and each result is the sum
    of its products.

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
    ci = dims_of(operator, data, 4)[1]
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
    if tuple(strides) == (1, 1):
        total = _dense(types.product, data, weight, cut, added)
    elif any(k % step for k, step in zip(kernels, strides, strict=True)):
        total = _gathered(types.product, data, weight, strides, cut, added)
    else:
        total = _interleaved(types.product, data, weight, strides, cut, added)
    return apply_epilogue(operator, total, 1, types, bias, activation)


def _dense(
    product: Product,
    data: te.Tensor,
    weight: te.Tensor,
    cut: Sequence[int],
    added: Sequence[int],
) -> te.Tensor:
    """Convolve the padded image with the reversed kernel."""
    dims = n, ci, *sizes = dims_of("conv2d_transpose", data, 4)
    _, co, *kernels = dims_of("conv2d_transpose", weight, 4)
    before = [k - 1 - p for k, p in zip(kernels, cut, strict=True)]
    after = [b + o for b, o in zip(before, added, strict=True)]
    padded = pad(data, dims, (0, 0, *before), (0, 0, *after), name="data_pad")
    reversed_kernel = te.compute(
        (co, ci, *kernels),
        lambda o, i, y, x: weight[i, o, kernels[0] - 1 - y, kernels[1] - 1 - x],
        name="kernel_transform",
    )
    dc = te.reduce_axis((0, ci), name="dc")
    dh, dw = (te.reduce_axis((0, k), name=r) for k, r in zip(kernels, ("dh", "dw"), strict=True))

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Reduction:
        value = product(padded[b, dc, y + dh, x + dw], reversed_kernel[c, dc, dh, dw])
        return te.sum(value, axis=[dc, dh, dw])

    extents = zip(sizes, before, after, kernels, strict=True)
    shape = (n, co, *(size + b + e - k + 1 for size, b, e, k in extents))
    return te.compute(shape, element, name="conv2d_transpose_nchw")


def _interleaved(  # noqa: PLR0917
    product: Product,
    data: te.Tensor,
    weight: te.Tensor,
    strides: Sequence[int],
    cut: Sequence[int],
    added: Sequence[int],
) -> te.Tensor:
    """Compute all phases as one convolution of stride 1, and interleave them."""
    dims = n, ci, *_ = dims_of("conv2d_transpose", data, 4)
    _, co, *kernels = dims_of("conv2d_transpose", weight, 4)
    # Rows of an image and of the result have a common origin in units of the stride, `p` rows up.
    taps = [k // step for k, step in zip(kernels, strides, strict=True)]
    first = [p // step for p, step in zip(cut, strides, strict=True)]
    sizes = _result_sizes(dims[2:], kernels, strides, cut, added)
    last = [(size - 1 + p) // step for size, p, step in zip(sizes, cut, strides, strict=True)]
    last[1] = first[1] + _tileable(last[1] - first[1] + 1) - 1
    before = [t - 1 - f for t, f in zip(taps, first, strict=True)]
    after = [end - (size - 1) for end, size in zip(last, dims[2:], strict=True)]
    padded = pad(data, dims, (0, 0, *before), (0, 0, *after), name="data_pad")
    phase_kernel = _phase_kernel(weight, (ci, co), strides, taps)
    dc = te.reduce_axis((0, ci), name="dc")
    dh, dw = (te.reduce_axis((0, t), name=r) for t, r in zip(taps, ("dh", "dw"), strict=True))

    def phase(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Reduction:
        value = product(padded[b, dc, y + dh, x + dw], phase_kernel[c, dc, dh, dw])
        return te.sum(value, axis=[dc, dh, dw])

    counts = [end - f + 1 for end, f in zip(last, first, strict=True)]
    phases = te.compute((n, strides[0] * strides[1] * co, *counts), phase, name="phases")

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Value:
        (ry, qy), (rx, qx) = map(_phase, (y, x), cut, strides)
        return phases[b, (ry * strides[1] + rx) * co + c, qy - first[0], qx - first[1]]

    return te.compute((n, co, *sizes), element, name="conv2d_transpose_nchw")


def _gathered(  # noqa: PLR0917
    product: Product,
    data: te.Tensor,
    weight: te.Tensor,
    strides: Sequence[int],
    cut: Sequence[int],
    added: Sequence[int],
) -> te.Tensor:
    """Multiply each pixel by the whole kernel, and add up the products of each result."""
    dims = n, ci, *sizes = dims_of("conv2d_transpose", data, 4)
    _, co, *kernels = dims_of("conv2d_transpose", weight, 4)
    result = _result_sizes(sizes, kernels, strides, cut, added)
    taps = [-(-k // step) for k, step in zip(kernels, strides, strict=True)]
    # The last result meets pixels up to this one; its other products are in rows of zeros.
    last = [(size - 1 + p) // step for size, p, step in zip(result, cut, strides, strict=True)]
    before = [max(0, t - 1 - p // step) for t, p, step in zip(taps, cut, strides, strict=True)]
    after = [max(0, end - (size - 1)) for end, size in zip(last, sizes, strict=True)]
    width = before[1] + sizes[1] + after[1]
    after[1] += _tileable(width) - width
    padded = pad(data, dims, (0, 0, *before), (0, 0, *after), name="data_pad")
    kernel = te.compute(
        (co * kernels[0] * kernels[1], ci),
        lambda c, i: weight[
            i, c // (kernels[0] * kernels[1]), c // kernels[1] % kernels[0], c % kernels[1]
        ],
        name="kernel_transform",
    )
    dc = te.reduce_axis((0, ci), name="dc")
    extents = [b + size + a for b, size, a in zip(before, sizes, after, strict=True)]
    products = te.compute(
        (n, co * kernels[0] * kernels[1], *extents),
        lambda b, c, y, x: te.sum(product(padded[b, dc, y, x], kernel[c, dc]), axis=dc),
        name="products",
    )

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Value:
        (ry, qy), (rx, qx) = map(_phase, (y, x), cut, strides)
        total: te.Value | None = None
        for tap in itertools.product(*(range(t) for t in taps)):
            ky, kx = ry + tap[0] * strides[0], rx + tap[1] * strides[1]
            channel = (c * kernels[0] + ky) * kernels[1] + kx
            term = products[b, channel, qy + before[0] - tap[0], qx + before[1] - tap[1]]
            short = [
                at < k
                for at, k, t, step in zip((ky, kx), kernels, tap, strides, strict=True)
                if (t + 1) * step > k
            ]
            if short:
                term = te.if_then_else(te.all(*short), term, 0)
            total = term if total is None else total + term
        assert total is not None, "a kernel has elements"
        return total

    return te.compute((n, co, *result), element, name="conv2d_transpose_nchw")


def _phase(index: te.Value, cut: int, step: int) -> tuple[te.Value, te.Value]:
    """Return the phase of a result, and its position among the results of the phase."""
    return (index + cut) % step, (index + cut) // step


def _result_sizes(
    sizes: Sequence[int],
    kernels: Sequence[int],
    strides: Sequence[int],
    cut: Sequence[int],
    added: Sequence[int],
) -> list[int]:
    return [
        (size - 1) * step - 2 * p + k + extra
        for size, step, p, k, extra in zip(sizes, strides, cut, kernels, added, strict=True)
    ]


def _tileable(width: int) -> int:
    """Return the next width that tiles of 4 to 6 pixels divide: those of a register tile.

    The elements beyond are computed and not used. Widths are often primes: 29 for images of 28.
    """
    while all(width % pixels for pixels in (4, 5, 6)):
        width += 1
    return width


def _phase_kernel(
    weight: te.Tensor, channels: tuple[int, int], strides: Sequence[int], taps: Sequence[int]
) -> te.Tensor:
    """Return the kernels of all phases as output channels of one convolution of stride 1.

    The results whose position is `r` modulo the stride use the elements `r`, `r + stride`, ... of
    a kernel.
    """
    ci, co = channels

    def element(c: te.Value, i: te.Value, y: te.Value, x: te.Value) -> te.Value:
        phase = c // co
        at = [
            r + (t - 1 - d) * s
            for r, t, d, s in zip(
                (phase // strides[1], phase % strides[1]), taps, (y, x), strides, strict=True
            )
        ]
        return weight[i, c % co, at[0], at[1]]

    return te.compute((strides[0] * strides[1] * co, ci, *taps), element, name="kernel_transform")
