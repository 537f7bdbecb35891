"""Images of another size, by the definitions of ONNX: each axis is resized on its own.

An element of the result has a position in the image, a number. Its value is that of the nearest
element, or a sum of elements near the position with weights that depend on the distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.checks import check_numbers, check_rank, check_static
from compiler.graph.operators.images.resize_tensors import resize_tensors
from compiler.graph.operators.images.resized_axes import (
    METHODS,
    MODES,
    ROUNDINGS,
    ResizedAxis,
    resized_axes,
)
from compiler.graph.operators.types import check_accepts, check_choice


def _positions_of(line: ResizedAxis) -> Array:
    steps = np.arange(line.size, dtype=np.float64)
    span = line.length - 1
    if line.mode == "align_corners":
        return np.asarray(steps * (line.extent - 1) / (span or math.inf))
    if line.mode == "asymmetric":
        return _scaled(steps, line)
    if line.mode == "tf_half_pixel_for_nn":
        return _scaled(steps + 0.5, line)
    if line.mode == "tf_crop_and_resize":
        low, high = line.begin * (line.extent - 1), line.end * (line.extent - 1)
        return low + (steps * (high - low) / span if span else (high - low) / 2 + steps * 0)
    centers = _scaled(steps + 0.5, line) - 0.5
    if line.mode == "half_pixel_symmetric":
        centers += (line.extent - line.extent * line.size / line.length) / 2
    elif line.mode == "pytorch_half_pixel" and line.size == 1:
        centers = steps * 0 - 0.5
    return centers


def _scaled(places: Array, line: ResizedAxis) -> Array:
    dtype = np.float32 if line.method == METHODS[0] else np.float64
    return (places / line.scale).astype(dtype).astype(np.float64)


def _matrix(line: ResizedAxis) -> Array:
    """Return the weight of each element of the image in each of the result: `[size, extent]`."""
    matrix = np.zeros((line.size, line.extent))
    reach = math.ceil((1 if line.method == "linear" else 2) / line.stretch)
    for row, x in zip(matrix, _positions_of(line), strict=True):
        near = np.arange(math.ceil(x) - reach - 1, math.ceil(x) + reach + 1)
        weights = _kernel_arrays(np.abs(near - x) * line.stretch, line)
        if line.cubic_exclude:
            weights[(near < 0) | (near >= line.extent)] = 0
        np.add.at(row, np.clip(near, 0, line.extent - 1), weights / weights.sum())
    return matrix


def _kernel_arrays(d: Array, line: ResizedAxis) -> Array:
    if line.method == "linear":
        return np.asarray(np.clip(1 - d, 0, 1))
    a = line.cubic_alpha
    far = np.where(d < 2, np.polyval([a, -5 * a, 8 * a, -4 * a], d), 0)
    return np.asarray(np.where(d <= 1, np.polyval([a + 2, -a - 3, 0, 1], d), far))


_ROUND: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _resize_reference(data: Array, *, extrapolation_value: float, **attrs: Any) -> Array:
    lines = resized_axes(data.shape[2:], attrs)
    changed = [(axis, line) for axis, line in enumerate(lines, 2) if not line.is_unchanged]
    if attrs["method"] == METHODS[0]:
        result = data
        for axis, line in changed:
            nearest = np.clip(_ROUND[line.rounding](_positions_of(line)), 0, line.extent - 1)
            result = np.take(result, nearest.astype(int), axis)
    else:
        result = widened(data)
        for axis, line in changed:
            result = np.moveaxis(np.tensordot(result, _matrix(line), (axis, 1)), -1, axis)
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        for axis, line in changed:
            at = _positions_of(line)
            is_outside = (at < 0) | (at > line.extent - 1)
            column = is_outside.reshape(-1, *[1] * (data.ndim - axis - 1))
            result = np.where(column, extrapolation_value, result)
    return np.asarray(result).astype(data.dtype)


def _declare(rank: int) -> None:
    """Declare the operator of a number of spatial dimensions."""
    name = f"image.resize{rank}d"

    @graph_operator(name, "window", tensors=resize_tensors, reference=_resize_reference)
    def infer(
        data: TensorType,
        *,
        size: tuple[int, ...],
        scales: tuple[float, ...] = (),
        roi: tuple[float, ...] = (),
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "round_prefer_floor",
        cubic_alpha: float = -0.75,
        cubic_exclude: bool = False,
        extrapolation_value: float = 0.0,
        antialias: bool = False,
    ) -> TensorType:
        """Infer images `[n, c, *space]` of another size.

        Args:
            data: The images.
            size: The extents of the result after the first two.
            scales: The factors of the extents, if they are not quotients of integers.
            roi: For "tf_crop_and_resize": where the result begins and ends in each axis, as parts
                of the image; all begins come before all ends.
            method: One of `METHODS`.
            coordinate_transformation_mode: One of `MODES`.
            rounding_method: One of `ROUNDINGS`, for the nearest element.
            cubic_alpha: The coefficient of the cubic kernel (Keys 1981).
            cubic_exclude: Whether elements outside of the image have no weight.
            extrapolation_value: The value outside of the image, for "tf_crop_and_resize".
            antialias: Whether the kernel reaches over more elements in an image that shrinks.
        """
        check_rank(name, "the image", data, rank + 2)
        check_static(name, "the image", TensorType(data.shape[2:], data.dtype))
        check_numbers(name, "size", size, rank, 1)
        check_choice(name, "method", method, METHODS)
        check_choice(name, "the mode", coordinate_transformation_mode, MODES)
        check_choice(name, "the rounding", rounding_method, ROUNDINGS)
        if method != METHODS[0]:
            check_accepts(f"{name} by {method}", "float", data)
        if len(scales) not in {0, rank} or any(scale <= 0 for scale in scales):
            raise ModelError(f"{name}: scales are {scales}: expected {rank} positive numbers")
        if len(roi) not in {0, 2 * rank} or 0 in data.shape:
            raise ModelError(f"{name} of {data.shape} in {roi}: expected {2 * rank} numbers")
        return TensorType((*data.shape[:2], *size), data.dtype)


for _rank in (1, 2, 3):
    _declare(_rank)
