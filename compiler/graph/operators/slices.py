"""Operators that cut tensors into parts, join parts, and repeat or reverse them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import (
    Extent,
    add,
    floor_divide,
    multiply,
    show_extent,
    show_shape,
    subtract,
)
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axes, check_axis
from compiler.graph.operators.types import check_same_dtype
from compiler.ir.core.nodes import static_shape

MAX_CHAIN = 64
"""Parts of a concatenation that one chain of conditions selects from. More are halved first: the
depth of expressions is limited. Chosen."""

BEYOND = 2**31 - 1
"""A symbolic extent is below it: an end of a slice from here on is the end of the axis."""


def _strided_slice_tensors(
    x: te.Tensor,
    *,
    axes: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
) -> te.Tensor:
    ranges = [range(n) for n in static_shape(x.buffer)]
    for axis, first, last, step in zip(axes, begin, end, strides, strict=True):
        ranges[axis] = ranges[axis][first:last:step]
    return te.compute(
        [len(r) for r in ranges],
        lambda *i: x[tuple(index * r.step + r.start for index, r in zip(i, ranges, strict=True))],
        name="strided_slice",
    )


def _strided_slice_reference(
    x: Array,
    *,
    axes: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
) -> Array:
    index = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begin, end, strides, strict=True):
        index[axis] = slice(first, last, step)
    return x[tuple(index)]


@graph_operator(
    "strided_slice", "move", tensors=_strided_slice_tensors, reference=_strided_slice_reference
)
def strided_slice(
    x: TensorType,
    *,
    axes: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
) -> TensorType:
    """Infer a slice with the rules of Python.

    Args:
        x: The tensor.
        axes: The axes that are sliced, each once.
        begin: The first position on each of these axes.
        end: The end on each of these axes, which is excluded.
        strides: The steps; not 0.
    """
    if not len(axes) == len(begin) == len(end) == len(strides) or 0 in strides:
        raise ModelError(
            f"strided_slice: axes {axes}, begin {begin}, end {end}, strides {strides}: expected as"
            " many of each, and steps that are not 0"
        )
    check_axes("strided_slice", axes, x.rank)
    shape = list(x.shape)
    for axis, first, last, step in zip(axes, begin, end, strides, strict=True):
        shape[axis] = _sliced_extent(shape[axis], first, last, step)
    return TensorType(tuple(shape), x.dtype)


def _sliced_extent(extent: Extent, first: int, last: int, step: int) -> Extent:
    if isinstance(extent, int):
        return len(range(extent)[first:last:step])
    is_to_end = last >= BEYOND
    if step == -1 and first in {-1, BEYOND} and last <= -BEYOND:
        return extent
    if step != 1 or not (is_to_end or last < 0 or (first < 0 and last >= 0)):
        raise ModelError(
            f"strided_slice from {first} to {last} by {step} of the symbolic"
            f" extent {show_extent(extent)}",
            advice="fix the axes of the model's inputs: shapes={...}",
        )
    if first < 0:
        return min(-first, -first + last) if last < 0 else -first
    rest = extent if is_to_end else add(extent, last)
    return subtract(rest, first)


def _concat_tensors(*parts: te.Tensor, axis: int) -> te.Tensor:
    shapes = [static_shape(part.buffer) for part in parts]
    axis %= len(shapes[0])
    lengths = [shape[axis] for shape in shapes]

    begins = [0, *accumulate(lengths)]

    def among(first: int, last: int, i: tuple[te.Value, ...]) -> te.Value:
        """Return the element at a position that lies in one of the parts from first to last."""

        def element(part: int) -> te.Value:
            return parts[part][(*i[:axis], i[axis] - begins[part], *i[axis + 1 :])]

        def split(part: int, below: te.Value, above: te.Value) -> te.Value:
            return te.if_then_else(te.const(begins[part], "int32") <= i[axis], above, below)

        if last - first >= MAX_CHAIN:
            middle = (first + last) // 2
            return split(middle, among(first, middle, i), among(middle, last, i))
        result = element(first)
        for part in range(first + 1, last):
            result = split(part, result, element(part))
        return result

    def value(*i: te.Value) -> te.Value:
        return among(0, len(parts), i)

    shape = (*shapes[0][:axis], sum(lengths), *shapes[0][axis + 1 :])
    return te.compute(shape, value, name="concat")


def _concat_reference(*parts: Array, axis: int) -> Array:
    return np.concatenate(parts, axis)


@graph_operator("concat", "move", tensors=_concat_tensors, reference=_concat_reference)
def concat(*parts: TensorType, axis: int = 0) -> TensorType:
    """Infer tensors that are joined along an axis."""
    if not parts:
        raise ModelError("concat of no tensors")
    check_same_dtype("concat", *parts)
    first = parts[0]
    axis = check_axis("concat", axis, first.rank)
    total: Extent = 0
    for part in parts:
        if part.rank != first.rank or _without(part.shape, axis) != _without(first.shape, axis):
            shapes = ", ".join(show_shape(p.shape) for p in parts)
            is_static = all(p.is_static for p in parts)
            raise ModelError(
                f"concat along axis {axis} of {shapes}: the other extents differ",
                advice="" if is_static else "fix the axes that have to be equal",
            )
        total = add(total, part.shape[axis])
    return TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


def _without(shape: tuple[Extent, ...], axis: int) -> tuple[Extent, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _split_tensors(
    x: te.Tensor, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[te.Tensor, ...]:
    dims = static_shape(x.buffer)
    axis %= len(dims)
    bounds = _bounds(dims[axis], indices_or_sections)

    def part(begin: int, end: int) -> te.Tensor:
        return te.compute(
            (*dims[:axis], end - begin, *dims[axis + 1 :]),
            lambda *i: x[(*i[:axis], i[axis] + begin, *i[axis + 1 :])],
            name="split",
        )

    return tuple(part(begin, end) for begin, end in bounds)


def _bounds(extent: int, indices_or_sections: int | Sequence[int]) -> list[tuple[int, int]]:
    """Return where the parts of an axis begin and end."""
    if isinstance(indices_or_sections, int):
        size = extent // indices_or_sections
        indices = [size * k for k in range(1, indices_or_sections)]
    else:
        indices = list(indices_or_sections)
    return list(zip([0, *indices], [*indices, extent], strict=True))


def _split_reference(
    x: Array, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Array, ...]:
    return tuple(np.split(x, indices_or_sections, axis))


@graph_operator("split", "move", tensors=_split_tensors, reference=_split_reference)
def split(
    x: TensorType, *, indices_or_sections: int | tuple[int, ...], axis: int = 0
) -> tuple[TensorType, ...]:
    """Infer the parts of a tensor along an axis.

    Args:
        x: The tensor.
        indices_or_sections: The number of parts, all of one size; or where each part but the first
            one begins, in ascending order.
        axis: The axis.
    """
    axis = check_axis("split", axis, x.rank)
    extent = x.shape[axis]
    sizes: list[Extent]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or (isinstance(extent, int) and extent % indices_or_sections):
            raise ModelError(
                f"split of {show_extent(extent)} elements in {indices_or_sections} parts"
            )
        sizes = [floor_divide(extent, indices_or_sections)] * indices_or_sections
    else:
        ends = [*indices_or_sections, extent]
        sizes = [subtract(end, begin) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise ModelError(
            f"split of {show_extent(extent)} elements at {indices_or_sections}: expected an order"
        )
    return tuple(TensorType((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype) for n in sizes)


def _flip_tensors(x: te.Tensor, *, axis: int) -> te.Tensor:
    dims = static_shape(x.buffer)
    axis %= len(dims)
    last = dims[axis] - 1
    return te.compute(dims, lambda *i: x[(*i[:axis], last - i[axis], *i[axis + 1 :])], name="flip")


def _flip_reference(x: Array, *, axis: int) -> Array:
    return np.flip(x, axis)


@graph_operator("flip", "move", tensors=_flip_tensors, reference=_flip_reference)
def flip(x: TensorType, *, axis: int) -> TensorType:
    """Infer a tensor in the reverse order along an axis."""
    check_axis("flip", axis, x.rank)
    return x


def _roll_tensors(x: te.Tensor, *, shift: int, axis: int) -> te.Tensor:
    dims = static_shape(x.buffer)
    axis %= len(dims)
    begin = -shift % dims[axis]

    def value(*i: te.Value) -> te.Value:
        return x[(*i[:axis], (i[axis] + begin) % dims[axis], *i[axis + 1 :])]

    return te.compute(dims, value, name="roll")


def _roll_reference(x: Array, *, shift: int, axis: int) -> Array:
    return np.roll(x, shift, axis)


@graph_operator("roll", "move", tensors=_roll_tensors, reference=_roll_reference)
def roll(x: TensorType, *, shift: int, axis: int) -> TensorType:
    """Infer a tensor whose elements move along an axis; those beyond its end come first."""
    check_axis("roll", axis, x.rank)
    return x


def _repeat_tensors(x: te.Tensor, *, repeats: int, axis: int) -> te.Tensor:
    dims = static_shape(x.buffer)
    axis %= len(dims)
    return te.compute(
        (*dims[:axis], dims[axis] * repeats, *dims[axis + 1 :]),
        lambda *i: x[(*i[:axis], i[axis] // repeats, *i[axis + 1 :])],
        name="repeat",
    )


def _repeat_reference(x: Array, *, repeats: int, axis: int) -> Array:
    return np.repeat(x, repeats, axis)


@graph_operator("repeat", "move", tensors=_repeat_tensors, reference=_repeat_reference)
def repeat(x: TensorType, *, repeats: int, axis: int) -> TensorType:
    """Infer a tensor in which each element of an axis comes several times in a row."""
    axis = check_axis("repeat", axis, x.rank)
    if repeats < 0:
        raise ModelError(f"repeat: repeats is {repeats}: expected 0 or more")
    extent = multiply(x.shape[axis], repeats)
    return TensorType((*x.shape[:axis], extent, *x.shape[axis + 1 :]), x.dtype)


def _tile_tensors(x: te.Tensor, *, repeats: tuple[int, ...]) -> te.Tensor:
    dims = static_shape(x.buffer)
    return te.compute(
        [n * count for n, count in zip(dims, repeats, strict=True)],
        lambda *i: x[tuple(k % n for k, n in zip(i, dims, strict=True))],
        name="tile",
    )


def _tile_reference(x: Array, *, repeats: tuple[int, ...]) -> Array:
    return np.tile(x, repeats)


@graph_operator("tile", "move", tensors=_tile_tensors, reference=_tile_reference)
def tile(x: TensorType, *, repeats: tuple[int, ...]) -> TensorType:
    """Infer a tensor that is repeated along each axis."""
    if len(repeats) != x.rank or min(repeats, default=0) < 0:
        raise ModelError(f"tile of {x.shape}: repeats are {repeats}: expected one for each axis")
    shape = tuple(multiply(n, count) for n, count in zip(x.shape, repeats, strict=True))
    return TensorType(shape, x.dtype)
