"""Transposed convolutions: each element of the image is spread over a window of the result.

The numbers of `padding` are those cut off before each dimension of the result, then those after;
`output_padding` adds to each end. Kernels are `[ci, co / groups, *kernel]`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, add, multiply
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.checks import check_numbers, check_rank, check_static
from compiler.graph.operators.products import have_product
from compiler.graph.operators.reshape import view
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.epilogue import check_types, converted
from compiler.ops.tensors.transposed_convolution import conv2d_transpose


def _transposed(
    data: te.Tensor,
    weight: te.Tensor,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    out_dtype: DType | None,
) -> te.Tensor:
    rank = len(strides)
    before, after = padding[:rank], padding[rank:]
    # The library cuts off as much on both sides; more on one side is less of what it adds there.
    added = [o + b - a for o, b, a in zip(output_padding, before, after, strict=True)]
    kernel = static_shape(weight.buffer)[2:]
    fits = all(0 <= a < s for a, s in zip(added, strides, strict=True)) and all(
        b < k for b, k in zip(before, kernel, strict=True)
    )
    if rank > 2 or groups > 1 or set(dilation) != {1} or not fits:
        sizes = _result_sizes(data, weight, strides, padding, output_padding, dilation)
        return _by_convolution(data, weight, sizes, strides, before, dilation, groups, out_dtype)
    if rank == 2:
        return conv2d_transpose(
            data,
            weight,
            stride=strides,
            padding=before,
            output_padding=added,
            out_dtype=out_dtype,
        )
    image = conv2d_transpose(
        *(_as_image(x, name) for x, name in ((data, "image"), (weight, "kernel"))),
        stride=(1, *strides),
        padding=(0, *before),
        output_padding=(0, *added),
        out_dtype=out_dtype,
    )
    n, co, _, width = static_shape(image.buffer)
    return view(image, (n, co, width), "row")


def _as_image(x: te.Tensor, name: str) -> te.Tensor:
    n, c, width = static_shape(x.buffer)
    return view(x, (n, c, 1, width), name)


def _result_sizes(  # noqa: PLR0917
    data: te.Tensor,
    weight: te.Tensor,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> list[int]:
    space, kernel = static_shape(data.buffer)[2:], static_shape(weight.buffer)[2:]
    rank = len(space)
    parts = zip(
        space,
        strides,
        dilation,
        kernel,
        padding[:rank],
        padding[rank:],
        output_padding,
        strict=True,
    )
    return [(n - 1) * s + d * (k - 1) + 1 - b - a + o for n, s, d, k, b, a, o in parts]


def _by_convolution(  # noqa: PLR0917
    data: te.Tensor,
    weight: te.Tensor,
    sizes: list[int],
    strides: tuple[int, ...],
    before: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    out_dtype: DType | None,
) -> te.Tensor:
    """Convolve an image with zeros between its elements with the reversed kernel."""
    types = check_types("a transposed convolution", data.dtype, out_dtype, None)
    n, ci, *space = static_shape(data.buffer)
    _, co, *kernel = static_shape(weight.buffer)
    reaches = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]

    def stuffed_element(*i: te.Value) -> te.Value:
        source, inside = [], []
        for at, reach, cut, step, size in zip(i[2:], reaches, before, strides, space, strict=True):
            position = at - (reach - cut)
            source.append(position // step)
            inside += [position >= 0, position < (size - 1) * step + 1]
            inside += [position % step == 0] if step > 1 else []
        return te.if_then_else(te.all(*inside), data[(i[0], i[1], *source)], 0)

    extents = [size + reach for size, reach in zip(sizes, reaches, strict=True)]
    stuffed = te.compute((n, ci, *extents), stuffed_element, name="data_pad")
    rc = te.reduce_axis((0, ci // groups), name="rc")
    steps = [te.reduce_axis((0, k), name=f"r{axis}") for axis, k in enumerate(kernel)]

    def element(*i: te.Value) -> te.Reduction:
        channel = rc if groups == 1 else i[1] // co * (ci // groups) + rc
        places = [at + r * d for at, r, d in zip(i[2:], steps, dilation, strict=True)]
        turned = [k - 1 - r for k, r in zip(kernel, steps, strict=True)]
        factor = weight[(channel, i[1] if groups == 1 else i[1] % co, *turned)]
        product = types.product(stuffed[(i[0], channel, *places)], factor)
        return te.sum(product, axis=[rc, *steps])

    result = te.compute((n, co * groups, *sizes), element, name="conv_transpose")
    return converted(result, types.result)


def _transposed_arrays(
    data: Array,
    weight: Array,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    out_dtype: DType | None,
) -> Array:
    """Add the product with each element of the kernel where the image meets it."""
    data, weight = widened(data, out_dtype), widened(weight, out_dtype)
    n, ci, *space = data.shape
    _, co, *kernel = weight.shape
    rank = len(space)
    parts = zip(space, strides, dilation, kernel, output_padding, strict=True)
    full = [(m - 1) * s + d * (k - 1) + 1 + o for m, s, d, k, o in parts]
    total = np.zeros((n, groups, co, *full), data.dtype)
    columns = data.reshape(n, groups, ci // groups, -1)
    for position in itertools.product(*map(range, kernel)):
        at: Any = (..., *position)
        factors = weight[at].reshape(groups, ci // groups, co).swapaxes(1, 2)
        places: Any = (
            ...,
            *(
                slice(p * d, p * d + (m - 1) * s + 1, s)
                for p, d, m, s in zip(position, dilation, space, strides, strict=True)
            ),
        )
        total[places] += np.matmul(factors, columns).reshape(n, groups, co, *space)
    cut: Any = (
        ...,
        *(slice(b, m - a) for b, a, m in zip(padding[:rank], padding[rank:], full, strict=True)),
    )
    return np.asarray(total.reshape(n, groups * co, *full)[cut])


def _declare(rank: int) -> None:
    name = f"nn.conv{rank}d_transpose"

    @graph_operator(name, "window", tensors=_transposed, reference=_transposed_arrays)
    def infer(
        data: TensorType,
        weight: TensorType,
        *,
        strides: tuple[int, ...] = (1,) * rank,
        padding: tuple[int, ...] = (0, 0) * rank,
        output_padding: tuple[int, ...] = (0,) * rank,
        dilation: tuple[int, ...] = (1,) * rank,
        groups: int = 1,
        out_dtype: DType | None = None,
    ) -> TensorType:
        check_rank(name, "the image", data, rank + 2)
        check_rank(name, "the kernel", weight, rank + 2)
        check_numbers(name, "strides", strides, rank, 1)
        check_numbers(name, "padding", padding, 2 * rank, 0)
        check_numbers(name, "output_padding", output_padding, rank, 0)
        check_numbers(name, "dilation", dilation, rank, 1)
        if not have_product(data.dtype, weight.dtype, out_dtype):
            raise ModelError(f"{name} of {data.dtype} and {weight.dtype}: expected one type")
        ci, co, *kernel = check_static(name, "the kernel", weight)
        if data.shape[1] != ci or groups < 1 or ci % groups:
            raise ModelError(
                f"{name}: kernels {weight.shape} do not fit {data.shape[1]} channels in"
                f" {groups} group(s)"
            )
        space: list[Extent] = []
        for axis, size in enumerate(data.shape[2:]):
            more = dilation[axis] * (kernel[axis] - 1) + 1 + output_padding[axis]
            cut = padding[axis] + padding[axis + rank]
            extent = add(multiply(add(size, -1), strides[axis]), more - cut)
            if isinstance(extent, int) and extent < 1:
                raise ModelError(f"{name}: padding is {padding}: nothing of {size} remains")
            space.append(extent)
        return TensorType((data.shape[0], co * groups, *space), out_dtype or data.dtype)


for _rank in (1, 2, 3):
    _declare(_rank)
