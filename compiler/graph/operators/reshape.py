"""Operators that give elements other positions by their shape alone: views and permutations."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, exact_quotient, floor_divide, product, show_shape
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axes
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.graph.operators.types import check_choice
from compiler.ir.core.nodes import static_shape


def view(x: te.Tensor, shape: tuple[int, ...], name: str) -> te.Tensor:
    """Return a tensor of as many elements in another shape, in the same order."""
    groups = list(_groups(static_shape(x.buffer), shape))

    def value(*i: te.Value) -> te.Value:
        index: list[te.Value | int] = []
        for old, new, begin in groups:
            index += _split_index(_joined_index(i[begin : begin + len(new)], new), old)
        return x[tuple(index)]

    return te.compute(shape, value, name=name)


def _groups(
    old: tuple[int, ...], new: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Yield the smallest groups of axes with as many elements before and after.

    Without groups, each index would follow from all others by divisions.

    Yields:
        The extents before, those after, and the first axis after.
    """
    a = b = 0
    while a < len(old) or b < len(new):
        first_a, first_b = a, b
        left = right = 1
        while left != right or (a == first_a and b == first_b):
            if a < len(old) and (left <= right or b == len(new)):
                left *= old[a]
                a += 1
            else:
                right *= new[b]
                b += 1
        yield old[first_a:a], new[first_b:b], first_b


def _joined_index(indices: tuple[te.Value, ...], extents: tuple[int, ...]) -> te.Value | int:
    position: te.Value | int = 0
    for index, extent in zip(indices, extents, strict=True):
        if extent != 1:
            position = index if isinstance(position, int) else position * extent + index
    return position


def _split_index(position: te.Value | int, extents: tuple[int, ...]) -> list[te.Value | int]:
    """Return the index on each axis; the first one needs no remainder."""
    index: list[te.Value | int] = []
    outer = next((axis for axis, extent in enumerate(extents) if extent != 1), None)
    for axis, extent in enumerate(extents):
        if extent == 1 or isinstance(position, int):
            index.append(0)
            continue
        inner = math.prod(extents[axis + 1 :])
        part = position // inner if inner != 1 else position
        index.append(part if axis == outer else part % extent)
    return index


def _reshape_tensors(x: te.Tensor, *, shape: tuple[int, ...]) -> te.Tensor:
    old = static_shape(x.buffer)
    return view(x, np.empty(old, np.bool_).reshape(shape).shape, "reshape")


def _reshape_reference(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@graph_operator("reshape", "move", tensors=_reshape_tensors, reference=_reshape_reference)
def reshape(x: TensorType, *, shape: tuple[Extent, ...]) -> TensorType:
    """Infer a tensor of the same elements; one extent may be -1, and follows from the others."""
    if any(isinstance(extent, int) and extent < -1 for extent in shape) or shape.count(-1) > 1:
        raise ModelError(
            f"reshape: shape is {show_shape(shape)}: expected extents, of which one may be -1"
        )
    if -1 in shape:
        axis = shape.index(-1)
        rest = [extent for extent in shape if extent != -1]
        if 0 in rest:
            raise ModelError(
                f"reshape of {x.shape} to {show_shape(shape)}: the extent of axis {axis} is free"
            )
        missing = exact_quotient(x.shape, rest)
        shape = (*shape[:axis], missing, *shape[axis + 1 :])
    before, after = product(x.shape), product(shape)
    if before != after and isinstance(before, int) and isinstance(after, int):
        raise ModelError(
            f"reshape of {x.shape} to {show_shape(shape)}: {before} elements become {after}"
        )
    return TensorType(shape, x.dtype)


def _permute_tensors(x: te.Tensor, *, axes: tuple[int, ...] | None) -> te.Tensor:
    dims = static_shape(x.buffer)
    order = _order(axes, len(dims))
    return te.compute(
        [dims[axis] for axis in order],
        lambda *i: x[tuple(i[order.index(axis)] for axis in range(len(dims)))],
        name="permute_dims",
    )


def _permute_reference(x: Array, *, axes: tuple[int, ...] | None) -> Array:
    return np.transpose(x, axes)


def _order(axes: tuple[int, ...] | None, rank: int) -> list[int]:
    return list(reversed(range(rank))) if axes is None else [axis % rank for axis in axes]


@graph_operator("permute_dims", "move", tensors=_permute_tensors, reference=_permute_reference)
def permute_dims(x: TensorType, *, axes: tuple[int, ...] | None = None) -> TensorType:
    """Infer a tensor whose axis `k` is the axis `axes[k]`; by default in the reverse order."""
    if axes is not None and len(check_axes("permute_dims", axes, x.rank)) != x.rank:
        raise ModelError(f"permute_dims: axes are {axes}: expected all {x.rank} axes")
    return TensorType(tuple(x.shape[axis] for axis in _order(axes, x.rank)), x.dtype)


def _squeeze_tensors(x: te.Tensor, *, axis: tuple[int, ...] | None) -> te.Tensor:
    dims = static_shape(x.buffer)
    return view(x, np.squeeze(np.empty(dims, np.bool_), axis).shape, "squeeze")


def _squeeze_reference(x: Array, *, axis: tuple[int, ...] | None) -> Array:
    return np.squeeze(x, axis)


@graph_operator("squeeze", "move", tensors=_squeeze_tensors, reference=_squeeze_reference)
def squeeze(x: TensorType, *, axis: tuple[int, ...] | None = None) -> TensorType:
    """Infer a tensor without some axes of extent 1; by default without any such axis."""
    if axis is None:
        return TensorType(tuple(extent for extent in x.shape if extent != 1), x.dtype)
    axes = check_axes("squeeze", axis, x.rank)
    if any(isinstance(x.shape[k], int) and x.shape[k] != 1 for k in axes):
        raise ModelError(f"squeeze of {x.shape}: axis is {axis}: expected axes of extent 1")
    return TensorType(tuple(n for k, n in enumerate(x.shape) if k not in axes), x.dtype)


def _expand_dims_tensors(x: te.Tensor, *, axis: tuple[int, ...]) -> te.Tensor:
    dims = static_shape(x.buffer)
    return view(x, np.expand_dims(np.empty(dims, np.bool_), axis).shape, "expand_dims")


def _expand_dims_reference(x: Array, *, axis: tuple[int, ...]) -> Array:
    return np.expand_dims(x, axis)


@graph_operator(
    "expand_dims", "move", tensors=_expand_dims_tensors, reference=_expand_dims_reference
)
def expand_dims(x: TensorType, *, axis: tuple[int, ...]) -> TensorType:
    """Infer a tensor with new axes of extent 1; `axis` are their numbers in the result."""
    axes = check_axes("expand_dims", axis, x.rank + len(axis))
    extents = iter(x.shape)
    shape = tuple(1 if k in axes else next(extents) for k in range(x.rank + len(axes)))
    return TensorType(shape, x.dtype)


def _broadcast_to_tensors(x: te.Tensor, *, shape: tuple[int, ...]) -> te.Tensor:
    return te.compute(shape, lambda *i: element(x, i), name="broadcast_to")


def _broadcast_to_reference(x: Array, *, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


@graph_operator(
    "broadcast_to", "move", tensors=_broadcast_to_tensors, reference=_broadcast_to_reference
)
def broadcast_to(x: TensorType, *, shape: tuple[Extent, ...]) -> TensorType:
    """Infer a tensor whose axes of extent 1 are repeated, behind new leading axes."""
    if broadcast_shapes(x.shape, shape) != shape:
        raise ModelError(f"broadcast_to: {x.shape} can't be broadcast to {show_shape(shape)}")
    return TensorType(shape, x.dtype)


def _depth_to_space_tensors(x: te.Tensor, *, block_size: int, mode: str) -> te.Tensor:
    n, c, h, w = static_shape(x.buffer)
    channels = c // block_size**2

    def value(b: te.Value, k: te.Value, y: te.Value, z: te.Value) -> te.Value:
        cell = (y % block_size) * block_size + z % block_size
        depth = cell * channels + k if mode == "DCR" else k * block_size**2 + cell
        return x[b, depth, y // block_size, z // block_size]

    return te.compute((n, channels, h * block_size, w * block_size), value, name="depth_to_space")


def _depth_to_space_reference(x: Array, *, block_size: int, mode: str) -> Array:
    n, c, h, w = x.shape
    s, channels = block_size, c // block_size**2
    if mode == "DCR":
        parts = x.reshape(n, s, s, channels, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, channels, s, s, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, channels, h * s, w * s)


@graph_operator(
    "depth_to_space", "move", tensors=_depth_to_space_tensors, reference=_depth_to_space_reference
)
def depth_to_space(x: TensorType, *, block_size: int, mode: str = "DCR") -> TensorType:
    """Infer an image whose channels became blocks of pixels.

    Args:
        x: `[batch, channels, height, width]`.
        block_size: The side of a block.
        mode: "DCR" if the position in a block is the outer part of a channel, "CRD" if the inner.
    """
    _check_blocks("depth_to_space", x, block_size, mode)
    n, c, h, w = x.shape
    if isinstance(c, int) and c % block_size**2:
        raise ModelError(f"depth_to_space: {c} channels are no multiple of {block_size**2}")
    shape = (n, floor_divide(c, block_size**2), product((h, block_size)), product((w, block_size)))
    return TensorType(shape, x.dtype)


def _space_to_depth_tensors(x: te.Tensor, *, block_size: int, mode: str) -> te.Tensor:
    n, c, h, w = static_shape(x.buffer)

    def value(b: te.Value, k: te.Value, y: te.Value, z: te.Value) -> te.Value:
        cell, channel = (
            (k // c, k % c) if mode == "DCR" else (k % block_size**2, k // block_size**2)
        )
        row, column = cell // block_size, cell % block_size
        return x[b, channel, y * block_size + row, z * block_size + column]

    shape = (n, c * block_size**2, h // block_size, w // block_size)
    return te.compute(shape, value, name="space_to_depth")


def _space_to_depth_reference(x: Array, *, block_size: int, mode: str) -> Array:
    n, c, h, w = x.shape
    s = block_size
    parts = x.reshape(n, c, h // s, s, w // s, s)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape(n, c * s * s, h // s, w // s)


@graph_operator(
    "space_to_depth", "move", tensors=_space_to_depth_tensors, reference=_space_to_depth_reference
)
def space_to_depth(x: TensorType, *, block_size: int, mode: str = "DCR") -> TensorType:
    """Infer an image whose blocks of pixels became channels: the inverse of `depth_to_space`."""
    _check_blocks("space_to_depth", x, block_size, mode)
    n, c, h, w = x.shape
    if any(isinstance(extent, int) and extent % block_size for extent in (h, w)):
        raise ModelError(f"space_to_depth: {h} x {w} pixels are no multiple of {block_size}")
    height, width = floor_divide(h, block_size), floor_divide(w, block_size)
    shape = (n, product((c, block_size**2)), height, width)
    return TensorType(shape, x.dtype)


def _check_blocks(name: str, x: TensorType, block_size: int, mode: str) -> None:
    if x.rank != 4 or block_size < 1:
        raise ModelError(f"{name} of {x.shape}, block size {block_size}: expected rank 4")
    check_choice(name, "mode", mode, ("DCR", "CRD"))
