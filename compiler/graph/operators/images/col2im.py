"""Images from the columns of their windows: the sum of all windows that cover an element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import product, static
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.checks import check_numbers, check_rank
from compiler.graph.operators.types import check_accepts
from compiler.graph.operators.windows import Steps
from compiler.ir.core.dtypes import sum_dtype
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.epilogue import converted


def _linear(indices: list[te.Value], extents: tuple[int, ...]) -> te.Value:
    """Return the position of an element in rows that follow each other."""
    position: te.Value = te.const(0, "int32")
    for index, extent in zip(indices, extents, strict=True):
        position = position * extent + index
    return position


def _col2im_tensors(data: te.Tensor, *, size: tuple[int, ...], **attrs: Any) -> te.Tensor:
    steps = Steps(**attrs)
    counts, rank = static(steps.counts("col2im", size)), len(size)
    batch, rows, _ = static_shape(data.buffer)
    window = math.prod(steps.kernel)
    wide = sum_dtype(data.dtype)
    axes = [te.reduce_axis((0, k), name=f"r{axis}") for axis, k in enumerate(steps.kernel)]

    def element(n: te.Value, c: te.Value, *at: te.Value) -> te.Reduction:
        blocks, inside = [], []
        for axis, (index, r) in enumerate(zip(at, axes, strict=True)):
            begin = index + steps.padding[axis] - r * steps.dilation[axis]
            block = begin // steps.strides[axis]
            inside += [begin >= 0, block < counts[axis]]
            if steps.strides[axis] > 1:
                inside.append(begin % steps.strides[axis] == 0)
            blocks.append(te.max(te.min(block, counts[axis] - 1), 0))
        row = c * window + _linear([te.Value(r.expr) for r in axes], steps.kernel)
        value = data[(n, row, _linear(blocks, counts))].astype(wide)
        return te.sum(te.if_then_else(te.all(*inside), value, te.const(0, wide)), axis=axes)

    names = [f"ax{axis}" for axis in range(rank + 2)]
    shape = (batch, rows // window, *size)
    return converted(te.compute(shape, element, name="col2im", varargs_names=names), data.dtype)


def _col2im_reference(data: Array, *, size: tuple[int, ...], **attrs: Any) -> Array:
    steps = Steps(**attrs)
    counts, rank = static(steps.counts("col2im", size)), len(size)
    columns = widened(data).reshape(len(data), -1, *steps.kernel, *counts)
    margins = zip(size, steps.padding[:rank], steps.padding[rank:], strict=True)
    padded = np.zeros((*columns.shape[:2], *(n + before + after for n, before, after in margins)))
    for offset in np.ndindex(*steps.kernel):
        places: list[Any] = [
            slice(k * d, k * d + (count - 1) * s + 1, s)
            for k, d, s, count in zip(offset, steps.dilation, steps.strides, counts, strict=True)
        ]
        padded[(slice(None), slice(None), *places)] += columns[(slice(None), slice(None), *offset)]
    cut: list[Any] = [
        slice(before, before + n) for before, n in zip(steps.padding, size, strict=False)
    ]
    return np.asarray(padded[(slice(None), slice(None), *cut)]).astype(data.dtype)


@graph_operator("col2im", "window", tensors=_col2im_tensors, reference=_col2im_reference)
def col2im(
    data: TensorType,
    *,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> TensorType:
    """Infer images `[n, c, *size]` from windows `[n, c * elements of a window, windows]`.

    Args:
        data: The windows.
        size: The extents of the images.
        kernel: The extents of a window.
        strides: The steps between windows.
        padding: The elements before each dimension, then those after, which are dropped.
        dilation: The steps between the elements of a window.
    """
    check_accepts("col2im", "number", data)
    check_rank("col2im", "the windows", data, 3)
    check_numbers("col2im", "size", size, len(kernel), 1)
    counts = Steps(kernel, strides, padding, dilation).counts("col2im", size)
    rows, columns, window = data.shape[1], data.shape[2], math.prod(kernel)
    if not isinstance(rows, int) or rows % window or columns != product(counts):
        raise ModelError(
            f"col2im of {data.shape}: expected a multiple of {window} rows, and"
            f" {product(counts)} columns"
        )
    return TensorType((data.shape[0], rows // window, *size), data.dtype)
