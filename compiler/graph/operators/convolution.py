"""Convolutions of one to three spatial dimensions; channels come before space, or last.

The numbers of `padding` are those before each dimension, then those after.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import static
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.checks import check_rank, check_static
from compiler.graph.operators.layouts import ConvLayouts, arranged, extents
from compiler.graph.operators.products import have_product
from compiler.graph.operators.windows import Steps, window_elements
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.convolution import conv1d, conv2d, conv3d, depthwise_conv2d

_CONVOLUTIONS = {1: conv1d, 2: conv2d, 3: conv3d}


def _convolve(
    data: te.Tensor,
    weight: te.Tensor,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_dtype: DType | None,
) -> te.Tensor:
    dims, kernels = static_shape(data.buffer), static_shape(weight.buffer)
    channels, co = dims[data_layout.index("C")], kernels[kernel_layout.index("O")]
    if len(dims) == 4 and groups == channels == co > 1:
        return depthwise_conv2d(
            data,
            weight,
            stride=strides,
            padding=padding,
            dilation=dilation,
            layout=data_layout,
            out_dtype=out_dtype,
        )
    return _CONVOLUTIONS[len(dims) - 2](
        data,
        weight,
        stride=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=data_layout,
        out_dtype=out_dtype,
    )


def convolve_arrays(
    data: Array,
    weight: Array,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_dtype: DType | None,
) -> Array:
    """Convolve by a matrix product for each element of the kernel, and sum these."""
    plain = ConvLayouts.first(data.ndim - 2)
    data = arranged(widened(data, out_dtype), data_layout, plain.data)
    weight = arranged(widened(weight, out_dtype), kernel_layout, plain.kernel)
    co, inner, *kernel = weight.shape
    steps = Steps(tuple(kernel), strides, padding, dilation)
    counts = static(steps.counts("a convolution", data.shape[2:]))
    batch = data.shape[0]
    total = np.zeros((batch, groups, co // groups, math.prod(counts)), data.dtype)
    for position, image in window_elements(data, steps, counts):
        at: Any = (..., *position)
        factors = weight[at].reshape(groups, -1, inner)
        total += np.matmul(factors, image.reshape(batch, groups, inner, -1))
    return arranged(total.reshape(batch, co, *counts), plain.data, data_layout)


def _declare(rank: int) -> None:
    name = f"nn.conv{rank}d"
    plain = ConvLayouts.first(rank)

    @graph_operator(name, "window", tensors=_convolve, reference=convolve_arrays)
    def infer(
        data: TensorType,
        weight: TensorType,
        *,
        strides: tuple[int, ...] = (1,) * rank,
        padding: tuple[int, ...] = (0, 0) * rank,
        dilation: tuple[int, ...] = (1,) * rank,
        groups: int = 1,
        data_layout: str = plain.data,
        kernel_layout: str = plain.kernel,
        out_dtype: DType | None = None,
    ) -> TensorType:
        check_rank(name, "the image", data, rank + 2)
        check_rank(name, "the kernel", weight, rank + 2)
        if not have_product(data.dtype, weight.dtype, out_dtype):
            raise ModelError(f"{name} of {data.dtype} and {weight.dtype}: expected one type")
        kernels = check_static(name, "the kernel", weight)
        ConvLayouts(data_layout, kernel_layout).check(name, groups, data.shape, kernels)
        co, inner, *kernel = extents(kernels, kernel_layout, plain.kernel)
        batch, channels, *space = extents(data.shape, data_layout, plain.data)
        if groups < 1 or channels != inner * groups or co % groups:
            raise ModelError(
                f"{name}: kernels {weight.shape} do not fit {channels} channels in"
                f" {groups} group(s)"
            )
        steps = Steps(tuple(kernel), strides, padding, dilation)
        counts = steps.counts(name, tuple(space))
        shape = extents((batch, co, *counts), plain.data, data_layout)
        return TensorType(shape, out_dtype or data.dtype)


for _rank in _CONVOLUTIONS:
    _declare(_rank)
