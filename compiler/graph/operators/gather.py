"""Operators that read elements at positions that follow from data.

A negative index counts from the end. One out of range is clipped.
"""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import show_extent
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.sequential import position, wide_index
from compiler.graph.operators.types import check_accepts, check_same_dtype
from compiler.ir.core.nodes import static_shape


def in_range(indices: Array, extent: int) -> Array:
    """Return indices as positions, by NumPy."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + extent, wide), 0, extent - 1)


def _take_tensors(x: te.Tensor, indices: te.Tensor, *, axis: int) -> te.Tensor:
    dims, which = static_shape(x.buffer), static_shape(indices.buffer)
    axis %= len(dims)
    end = axis + len(which)

    def value(*i: te.Value) -> te.Value:
        return x[(*i[:axis], position(indices[i[axis:end]], dims[axis]), *i[end:])]

    return te.compute((*dims[:axis], *which, *dims[axis + 1 :]), value, name="take")


def _take_reference(x: Array, indices: Array, *, axis: int) -> Array:
    return np.take(x, in_range(indices, x.shape[axis]), axis)


@graph_operator("take", "move", tensors=_take_tensors, reference=_take_reference)
def take(x: TensorType, indices: TensorType, *, axis: int = 0) -> TensorType:
    """Infer slices of a tensor along an axis, one for each index."""
    check_accepts("take", "integer", indices)
    axis = check_axis("take", axis, x.rank)
    _check_extent("take", x, axis)
    return TensorType((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _check_extent(name: str, x: TensorType, axis: int) -> None:
    if x.shape[axis] == 0:
        raise ModelError(f"{name} of {x.shape}: axis {axis} has no elements")


def _gather_elements_tensors(x: te.Tensor, indices: te.Tensor, *, axis: int) -> te.Tensor:
    dims = static_shape(x.buffer)
    axis %= len(dims)

    def value(*i: te.Value) -> te.Value:
        return x[(*i[:axis], position(indices[i], dims[axis]), *i[axis + 1 :])]

    return te.compute(static_shape(indices.buffer), value, name="gather_elements")


def _gather_elements_reference(x: Array, indices: Array, *, axis: int) -> Array:
    axis %= x.ndim
    cut = tuple(slice(None if d == axis else n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(x[cut], in_range(indices, x.shape[axis]), axis)


@graph_operator(
    "gather_elements",
    "move",
    tensors=_gather_elements_tensors,
    reference=_gather_elements_reference,
)
def gather_elements(x: TensorType, indices: TensorType, *, axis: int = 0) -> TensorType:
    """Infer elements of a tensor: each index replaces its own position along the axis."""
    check_accepts("gather_elements", "integer", indices)
    axis = check_axis("gather_elements", axis, x.rank)
    _check_extent("gather_elements", x, axis)
    check_along("gather_elements", x, indices, axis)
    return TensorType(indices.shape, x.dtype)


def check_along(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    """Refuse indices with another rank, or with more elements along another axis.

    Raises:
        ModelError: Naming both shapes.
    """
    extents = zip(indices.shape, x.shape, strict=False)
    too_many = any(
        d != axis and isinstance(n, int) and isinstance(extent, int) and n > extent
        for d, (n, extent) in enumerate(extents)
    )
    if indices.rank != x.rank or too_many:
        raise ModelError(
            f"{name} of {x.shape} at indices {indices.shape} along axis {axis}: expected as many"
            " axes, and no more elements along the others"
        )


def _gather_nd_tensors(x: te.Tensor, indices: te.Tensor, *, batch_dims: int) -> te.Tensor:
    dims, (*which, count) = static_shape(x.buffer), static_shape(indices.buffer)
    end = batch_dims + count

    def value(*i: te.Value) -> te.Value:
        at = i[: len(which)]
        picked = [position(indices[(*at, k)], dims[batch_dims + k]) for k in range(count)]
        return x[(*i[:batch_dims], *picked, *i[len(which) :])]

    return te.compute((*which, *dims[end:]), value, name="gather_nd")


def _gather_nd_reference(x: Array, indices: Array, *, batch_dims: int) -> Array:
    *which, count = indices.shape
    result = np.empty((*which, *x.shape[batch_dims + count :]), x.dtype)
    for at in np.ndindex(*which):
        picked = tuple(
            int(in_range(n, extent))
            for n, extent in zip(indices[at], x.shape[batch_dims:], strict=False)
        )
        result[at] = x[(*at[:batch_dims], *picked)]
    return result


@graph_operator("gather_nd", "move", tensors=_gather_nd_tensors, reference=_gather_nd_reference)
def gather_nd(x: TensorType, indices: TensorType, *, batch_dims: int = 0) -> TensorType:
    """Infer slices of a tensor at tuples of indices.

    Args:
        x: The tensor.
        indices: `[*batch, ..., count]`: each tuple replaces `count` axes of `x` after the batch.
        batch_dims: How many leading axes `x` and the indices share.
    """
    check_accepts("gather_nd", "integer", indices)
    count = tuple_length("gather_nd", x.rank - batch_dims, indices)
    if not 0 <= batch_dims < indices.rank or x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ModelError(
            f"gather_nd of {x.shape} at {indices.shape}: expected {batch_dims} equal leading axes"
        )
    if 0 in x.shape[batch_dims : batch_dims + count]:
        raise ModelError(f"gather_nd of {x.shape}: an axis has no elements")
    return TensorType((*indices.shape[:-1], *x.shape[batch_dims + count :]), x.dtype)


def tuple_length(name: str, rank: int, indices: TensorType) -> int:
    """Return how many indices a tuple has.

    Raises:
        ModelError: If that is not known, or there are more than axes.
    """
    count = indices.shape[-1] if indices.rank else 0
    if not isinstance(count, int) or not 1 <= count <= rank:
        raise ModelError(
            f"{name} at {indices.shape}: the last axis has {show_extent(count)} elements:"
            f" expected 1 to {rank}"
        )
    return count


def _one_hot_tensors(
    indices: te.Tensor, on: te.Tensor, off: te.Tensor, *, depth: int, axis: int
) -> te.Tensor:
    which = static_shape(indices.buffer)
    axis %= len(which) + 1

    def value(*i: te.Value) -> te.Value:
        index = wide_index(indices[(*i[:axis], *i[axis + 1 :])])
        if index.dtype.startswith("int"):
            index = te.select(index < 0, index + te.const(depth, index.dtype), index)
        return te.select(index == i[axis].astype(index.dtype), on[()], off[()])

    return te.compute((*which[:axis], depth, *which[axis:]), value, name="one_hot")


def _one_hot_reference(indices: Array, on: Array, off: Array, *, depth: int, axis: int) -> Array:
    wide = np.expand_dims(indices.astype(np.int64), axis)
    steps = np.arange(depth).reshape([-1 if d == axis % wide.ndim else 1 for d in range(wide.ndim)])
    return np.where(np.where(wide < 0, wide + depth, wide) == steps, on, off)


@graph_operator("one_hot", "map", tensors=_one_hot_tensors, reference=_one_hot_reference)
def one_hot(
    indices: TensorType, on: TensorType, off: TensorType, *, depth: int, axis: int = -1
) -> TensorType:
    """Infer a tensor with the scalar `on` at each index along a new axis, and `off` elsewhere."""
    check_accepts("one_hot", "integer", indices)
    check_same_dtype("one_hot", on, off)
    if on.shape != () or off.shape != () or depth < 1:
        raise ModelError(
            f"one_hot of depth {depth}, values of {on.shape} and {off.shape}: expected scalars"
        )
    axis = check_axis("one_hot", axis, indices.rank + 1)
    return TensorType((*indices.shape[:axis], depth, *indices.shape[axis:]), on.dtype)


def _reverse_sequence_tensors(
    x: te.Tensor, lengths: te.Tensor, *, seq_axis: int, batch_axis: int
) -> te.Tensor:
    extent = static_shape(x.buffer)[seq_axis]

    def value(*i: te.Value) -> te.Value:
        length, step = lengths[i[batch_axis]].astype("int32"), i[seq_axis]
        source = te.select(step < length, length - 1 - step, step)
        return x[(*i[:seq_axis], te.max(te.min(source, extent - 1), 0), *i[seq_axis + 1 :])]

    return te.compute(x.shape, value, name="reverse_sequence")


def _reverse_sequence_reference(
    x: Array, lengths: Array, *, seq_axis: int, batch_axis: int
) -> Array:
    result = np.moveaxis(x, (batch_axis, seq_axis), (0, 1)).copy()
    for row, length in zip(result, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(result, (0, 1), (batch_axis, seq_axis))


@graph_operator(
    "reverse_sequence",
    "move",
    tensors=_reverse_sequence_tensors,
    reference=_reverse_sequence_reference,
)
def reverse_sequence(
    x: TensorType, lengths: TensorType, *, seq_axis: int = 0, batch_axis: int = 1
) -> TensorType:
    """Infer a batch of sequences whose first elements, as many as its length, are reversed."""
    check_accepts("reverse_sequence", "integer", lengths)
    if {seq_axis, batch_axis} != {0, 1} or x.rank < 2 or lengths.shape != (x.shape[batch_axis],):
        raise ModelError(
            f"reverse_sequence of {x.shape} with lengths {lengths.shape}: expected the axes 0 and"
            " 1, and one length for each element of the batch"
        )
    return x
