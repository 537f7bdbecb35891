"""Images that are sampled at positions of a grid, as PyTorch and ONNX define it."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.types import check_accepts, check_choice, check_same_dtype
from compiler.ir.core.dtypes import DType, sum_dtype
from compiler.ir.core.nodes import static_shape

METHODS = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")
CUBIC = -0.75
"""The coefficient of the cubic kernel; PyTorch and ONNX fix it."""


def _bounds(extent: int, align_corners: bool) -> tuple[float, float]:
    """Return the positions of the grid's -1 and 1."""
    return (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)


_Map: TypeAlias = Callable[[te.Value], te.Value]


# --- tensor expressions -------------------------------------------------------------------------


def _reflected(x: te.Value, extent: int, align_corners: bool) -> te.Value:
    """Return a position that is reflected at the borders until it lies between them."""
    low, high = _bounds(extent, align_corners)
    if low == high:
        return te.const(low, x.dtype)
    span = te.const(high - low, x.dtype)
    distance = te.abs(x - te.const(low, x.dtype))
    turns = te.floor(distance / span)
    rest = distance - turns * span
    is_even = te.floor(turns / 2) * 2 == turns
    return te.select(is_even, rest, span - rest) + te.const(low, x.dtype)


def _clipped(x: te.Value, extent: int) -> te.Value:
    """Return a position in the image; that of NaN is the first."""
    last = te.const(extent - 1, x.dtype)
    return te.select(x > 0, te.min(x, last), te.const(0, x.dtype))


def _taps(method: str) -> list[tuple[_Map, _Map | None]]:
    """Return functions of a position: the elements near it, as floats, and their weights."""
    if method == "nearest":
        return [(te.nearbyint, None)]

    def rest(x: te.Value) -> te.Value:
        return x - te.floor(x)

    if method == "bilinear":
        return [(te.floor, lambda x: 1 - rest(x)), (lambda x: te.floor(x) + 1, rest)]
    a = CUBIC

    def far(d: te.Value) -> te.Value:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    def near(d: te.Value) -> te.Value:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    return [
        (lambda x: te.floor(x) - 1, lambda x: far(rest(x) + 1)),
        (te.floor, lambda x: near(rest(x))),
        (lambda x: te.floor(x) + 1, lambda x: near(1 - rest(x))),
        (lambda x: te.floor(x) + 2, lambda x: far(2 - rest(x))),
    ]


def _sampled_axis(  # noqa: PLR0917
    grid: te.Tensor, axis: int, extent: int, method: str, padding_mode: str, align_corners: bool
) -> list[tuple[te.Tensor, te.Tensor | None]]:
    """Return the elements of an axis that each position needs, with weights: `[n, *steps]`.

    An element outside of the image is -1 if the padding is 0. With the padding `border`, the
    positions of the cubic method remain outside, as in PyTorch: its elements alone are clipped.
    """
    *shape, rank = static_shape(grid.buffer)
    names = _names(len(shape))

    def position(*i: te.Value) -> te.Value:
        # The grid counts the axes from the last.
        x = (grid[(*i, rank - 1 - axis)].astype(sum_dtype(grid.dtype)) + 1) / 2
        x = x * float(extent - 1) if align_corners else x * float(extent) - 0.5
        if padding_mode == "border" and method != "bicubic":
            return _clipped(x, extent)
        return _reflected(x, extent, align_corners) if padding_mode == "reflection" else x

    positions = te.compute(shape, position, name="position", varargs_names=names)

    def element(near: _Map, x: te.Value) -> te.Value:
        at = near(x)
        if padding_mode == "reflection":
            at = _reflected(at, extent, align_corners)
        index = _clipped(at, extent).astype("int32")
        if padding_mode != "zeros":
            return index
        is_inside = te.all(at >= 0, at <= te.const(extent - 1, at.dtype))
        return te.select(is_inside, index, te.const(-1, "int32"))

    def table(value: _Map, name: str) -> te.Tensor:
        return te.compute(shape, lambda *i: value(positions[i]), name=name, varargs_names=names)

    return [
        (
            table(functools.partial(element, near), "element"),
            None if weight is None else table(weight, "weight"),
        )
        for near, weight in _taps(method)
    ]


def _names(count: int) -> list[str]:
    return [f"ax{axis}" for axis in range(count)]


def _grid_sample_tensors(
    data: te.Tensor, grid: te.Tensor, *, method: str, padding_mode: str, align_corners: bool
) -> te.Tensor:
    dims, steps = static_shape(data.buffer), static_shape(grid.buffer)[1:-1]
    wide: DType = sum_dtype(data.dtype)
    axes = [
        _sampled_axis(grid, axis, extent, method, padding_mode, align_corners)
        for axis, extent in enumerate(dims[2:])
    ]

    def sample(n: te.Value, c: te.Value, at: list[te.Value]) -> te.Value:
        value = data[(n, c, *(te.max(x, 0) for x in at))].astype(wide)
        if padding_mode != "zeros":
            return value
        return te.select(te.all(*(x >= 0 for x in at)), value, te.const(0, wide))

    def value(n: te.Value, c: te.Value, *i: te.Value) -> te.Value:
        terms = []
        for taps in itertools.product(*axes):
            factors = [weight[(n, *i)] for _, weight in taps if weight is not None]
            x = sample(n, c, [element[(n, *i)] for element, _ in taps])
            terms.append(functools.reduce(operator.mul, factors, x))
        return functools.reduce(operator.add, terms).astype(data.dtype)

    shape = (*dims[:2], *steps)
    return te.compute(shape, value, name="grid_sample", varargs_names=_names(len(shape)))


# --- NumPy ----------------------------------------------------------------------------------------


def _reflected_arrays(x: Array, extent: int, align_corners: bool) -> Array:
    low, high = _bounds(extent, align_corners)
    if low == high:
        return np.full_like(x, low)
    return np.asarray(high - np.abs((x - low) % (2 * (high - low)) - (high - low)))


def _near(x: Array, method: str) -> list[tuple[Array, Array]]:
    if method == "nearest":
        return [(np.rint(x), np.ones_like(x))]
    base = np.floor(x)
    if method == "bilinear":
        return [(base + k, 1 - np.abs(x - base - k)) for k in (0, 1)]
    inner, outer = [CUBIC + 2, -CUBIC - 3, 0, 1], [CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC]
    distances = [(k, np.abs(x - base - k)) for k in (-1, 0, 1, 2)]
    return [
        (base + k, np.polyval(inner if k in {0, 1} else outer, distance))
        for k, distance in distances
    ]


def _grid_sample_reference(
    data: Array, grid: Array, *, method: str, padding_mode: str, align_corners: bool
) -> Array:
    extents, wide, positions = data.shape[2:], widened(data), widened(grid)
    axes = []
    for axis, extent in enumerate(extents):
        low, high = _bounds(extent, align_corners)
        x = low + (positions[..., len(extents) - 1 - axis] + 1) * (high - low) / 2
        if padding_mode == "border" and method != "bicubic":
            x = np.clip(x, 0, extent - 1)
        elif padding_mode == "reflection":
            x = _reflected_arrays(x, extent, align_corners)
        axes.append(_near(x, method))
    result = np.zeros((*data.shape[:2], *grid.shape[1:-1]))
    for taps in itertools.product(*axes):
        weight = math.prod((w for _, w in taps), start=np.ones(grid.shape[:-1]))
        where = []
        for (at, _), extent in zip(taps, extents, strict=True):
            if padding_mode == "reflection":
                at = _reflected_arrays(at, extent, align_corners)  # noqa: PLW2901
            if padding_mode == "zeros":
                weight = np.where((at >= 0) & (at < extent), weight, 0)
            where.append(np.clip(np.nan_to_num(at), 0, extent - 1).astype(np.int64))
        for n, image in enumerate(wide):
            result[n] += image[(slice(None), *(at[n] for at in where))] * weight[n]
    return result.astype(data.dtype)


@graph_operator(
    "image.grid_sample", "window", tensors=_grid_sample_tensors, reference=_grid_sample_reference
)
def grid_sample(
    data: TensorType,
    grid: TensorType,
    *,
    method: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> TensorType:
    """Infer images `[n, c, *space]` whose elements are sampled at positions.

    Args:
        data: The images.
        grid: The positions, `[n, *steps, axes]`: the last axis of the image first. From -1 to 1
            they span the image.
        method: One of `METHODS`, for two or three axes.
        padding_mode: One of `PADDING_MODES`: what lies outside of the images.
        align_corners: Whether -1 and 1 are the centers of elements, not their outer edges.
    """
    check_accepts("image.grid_sample", "float", data, grid)
    check_same_dtype("image.grid_sample", data, grid)
    check_choice("image.grid_sample", "method", method, METHODS)
    check_choice("image.grid_sample", "the padding mode", padding_mode, PADDING_MODES)
    rank = data.rank - 2
    if rank < 1 or grid.rank != data.rank or grid.shape[-1] != rank:
        raise ModelError(
            f"image.grid_sample of {data.shape} at {grid.shape}: expected a grid of {data.rank}"
            f" axes, the last with {rank} elements"
        )
    if data.shape[0] != grid.shape[0] or 0 in data.shape:
        raise ModelError(
            f"image.grid_sample of {data.shape} at {grid.shape}: expected equal first axes, and"
            " images with elements"
        )
    return TensorType((*data.shape[:2], *grid.shape[1:-1]), data.dtype)
