"""Transposed convolutions: each element of the image is spread over a window of the result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Phases:
    """The phases of the results along one dimension.

    Result `y` is number `(y + origin) // step` of phase `(y + origin) % step`. The window of number
    `q` of phase `p` ends at pixel `q + first + shift * p`, which is linear in both.

    Attributes:
        step: The number of phases: the stride.
        taps: The elements of the kernel in a window.
        origin: 0 if that makes windows linear. Otherwise all phases begin with the window of the
            first result, and some of them have a number more than necessary.
        cut: The elements that are cut off before the first result.
        size: The number of results.
    """

    step: int
    taps: int
    origin: int
    cut: int
    size: int

    @property
    def count(self) -> int:
        """Return the numbers of a phase."""
        return (self.size - 1 + self.origin) // self.step + 1

    @property
    def first(self) -> int:
        """Return the last pixel of the first window of the first phase."""
        return (self.cut - self.origin) // self.step

    @property
    def shift(self) -> int:
        """Return by how many pixels windows of the next phase begin later."""
        return (self.cut - self.origin) % self.step

    def padding(self, size: int) -> tuple[int, int]:
        """Return the zeros before and after an image of a size."""
        last = self.count - 1 + self.first + self.shift * (self.step - 1)
        return self.taps - 1 - self.first, last - (size - 1)

    def locate(self, result: te.Value) -> tuple[te.Value, te.Value]:
        """Return the phase of a result, and its number in the phase."""
        return (result + self.origin) % self.step, (result + self.origin) // self.step

    def pixel(self, phase: te.Value, number: te.Value, tap: te.Value) -> te.Value:
        """Return the pixel of the padded image that a window has at a tap."""
        position = number + tap
        return position + phase * self.shift if self.shift else position

    def kernel_element(self, phase: te.Value, tap: te.Value) -> te.Value:
        """Return the element of the kernel by which that pixel is multiplied."""
        remainder = (phase + (self.cut - self.origin)) % self.step
        return remainder + (self.taps - 1 - tap) * self.step


def _phases(kernel: int, step: int, cut: int, size: int) -> _Phases:
    """Return the phases of results; of two, the windows of one may begin a pixel later."""
    origin = 0 if step == 2 else cut % step
    return _Phases(step, kernel // step, origin, cut, size)


def _interleaved(  # noqa: PLR0917
    product: Product,
    data: te.Tensor,
    weight: te.Tensor,
    strides: Sequence[int],
    cut: Sequence[int],
    added: Sequence[int],
) -> te.Tensor:
    """Compute all phases as one convolution of stride 1, and interleave them.

    Phases are output channels. If their windows begin at different pixels, they have axes of their
    own, so that indices stay linear.
    """
    dims = n, ci, *image = dims_of("conv2d_transpose", data, 4)
    _, co, *kernels = dims_of("conv2d_transpose", weight, 4)
    sizes = _result_sizes(image, kernels, strides, cut, added)
    both = tuple(map(_phases, kernels, strides, cut, sizes))
    rows, columns = both
    before, after = zip(
        *(p.padding(size) for p, size in zip(both, image, strict=True)), strict=True
    )
    padded = pad(data, dims, (0, 0, *before), (0, 0, *after), name="data_pad")
    has_axes = any(p.shift for p in both)
    channels = (*strides, co) if has_axes else (strides[0] * strides[1] * co,)

    def split(channel: Sequence[te.Value]) -> Sequence[te.Value]:
        """Return the phases of a channel, and the output channel."""
        if has_axes:
            return channel
        (c,) = channel
        return c // co // columns.step, c // co % columns.step, c % co

    def element_of_kernel(*at: te.Value) -> te.Value:
        *channel, i, y, x = at
        py, px, c = split(channel)
        return weight[i, c, rows.kernel_element(py, y), columns.kernel_element(px, x)]

    taps = (rows.taps, columns.taps)
    kernel = te.compute((*channels, ci, *taps), element_of_kernel, name="kernel_transform")
    dc = te.reduce_axis((0, ci), name="dc")
    dh, dw = (te.reduce_axis((0, t), name=r) for t, r in zip(taps, ("dh", "dw"), strict=True))

    def phase(*at: te.Value) -> te.Reduction:
        b, *channel, y, x = at
        py, px, _ = split(channel)
        pixel = padded[b, dc, rows.pixel(py, y, dh), columns.pixel(px, x, dw)]
        return te.sum(product(pixel, kernel[(*channel, dc, dh, dw)]), axis=[dc, dh, dw])

    phases = te.compute((n, *channels, rows.count, columns.count), phase, name="phases")

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Value:
        (py, qy), (px, qx) = rows.locate(y), columns.locate(x)
        channel = (py, px, c) if has_axes else ((py * columns.step + px) * co + c,)
        return phases[(b, *channel, qy, qx)]

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
    n, ci, *sizes = dims_of("conv2d_transpose", data, 4)
    _, co, *kernels = dims_of("conv2d_transpose", weight, 4)
    result = _result_sizes(sizes, kernels, strides, cut, added)
    taps = [-(-k // step) for k, step in zip(kernels, strides, strict=True)]
    kernel = te.compute(
        (co * kernels[0] * kernels[1], ci),
        lambda c, i: weight[
            i, c // (kernels[0] * kernels[1]), c // kernels[1] % kernels[0], c % kernels[1]
        ],
        name="kernel_transform",
    )
    dc = te.reduce_axis((0, ci), name="dc")
    products = te.compute(
        (n, co * kernels[0] * kernels[1], *sizes),
        lambda b, c, y, x: te.sum(product(data[b, dc, y, x], kernel[c, dc]), axis=dc),
        name="products",
    )
    pixels = [p // step for p, step in zip(cut, strides, strict=True)]
    last = [(end - 1 + p) // step for end, p, step in zip(result, cut, strides, strict=True)]

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Value:
        phases = list(map(_phase, (y, x), cut, strides))
        total: te.Value | None = None
        for tap in itertools.product(*(range(t) for t in taps)):
            at = [r + t * step for (r, _), t, step in zip(phases, tap, strides, strict=True)]
            pixel = [q - t for (_, q), t in zip(phases, tap, strict=True)]
            conditions = []
            for d, t in enumerate(tap):
                if (t + 1) * strides[d] > kernels[d]:
                    conditions.append(at[d] < kernels[d])
                if pixels[d] < t:
                    conditions.append(pixel[d] >= 0)
                if last[d] - t >= sizes[d]:
                    conditions.append(pixel[d] < sizes[d])
            term = products[(b, (c * kernels[0] + at[0]) * kernels[1] + at[1], *pixel)]
            if conditions:
                term = te.if_then_else(te.all(*conditions), term, 0)
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
