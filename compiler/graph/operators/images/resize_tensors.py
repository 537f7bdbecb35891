"""Images of another size as tensor expressions.

The elements that a position needs, and their weights, are small tables, computed in float64.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from compiler import te
from compiler.graph.operators.images.resized_axes import METHODS, ResizedAxis, resized_axes
from compiler.ir.core.dtypes import DType, sum_dtype
from compiler.ir.core.nodes import static_shape

MAX_UNROLLED_TAPS = 4
"""Up to so many elements are summed in one expression; those of antialiasing in a loop. Chosen."""


def _double(value: float) -> te.Value:
    return te.const(float(value), "float64")


def _position(line: ResizedAxis, index: te.Value) -> te.Value:
    """Return where an element of the result is in the image."""
    step, last = index.astype("float64"), _double(line.extent - 1)
    half = _double(0.5)

    def scaled(distance: te.Value) -> te.Value:
        quotient = distance / _double(line.scale)
        if line.method != METHODS[0]:
            return quotient
        return quotient.astype("float32").astype("float64")  # as `ResizedAxis.scale` explains

    match line.mode:
        case "align_corners":
            return _double(0) if line.length == 1 else step * last / _double(line.length - 1)
        case "asymmetric":
            return scaled(step)
        case "tf_half_pixel_for_nn":
            return scaled(step + half)
        case "tf_crop_and_resize":
            part = _double((line.end - line.begin) * (line.extent - 1))
            moved = part / 2 if line.length == 1 else step * part / _double(line.length - 1)
            return moved + _double(line.begin * (line.extent - 1))
        case "pytorch_half_pixel" if line.size == 1:
            return _double(-0.5)
        case "half_pixel_symmetric":
            offset = line.extent / 2 * (1 - line.size / line.length)
            return _double(offset) + scaled(step + half) - half
        case _:
            return scaled(step + half) - half


def _element(line: ResizedAxis, position: te.Value) -> te.Value:
    """Return the index of an element as int32; one beyond the image is that at its border."""
    clipped = te.max(te.min(position, _double(line.extent - 1)), _double(0))
    return clipped.astype("int32")


def _nearest(line: ResizedAxis) -> te.Tensor:
    """Return the nearest element for each element of the result: `[size]`."""

    def value(i: te.Value) -> te.Value:
        x, half = _position(line, i), _double(0.5)
        match line.rounding:
            case "floor":
                rounded = te.floor(x)
            case "ceil":
                rounded = te.ceil(x)
            case "round_prefer_floor":
                rounded = te.ceil(x - half)
            case _:
                rounded = te.floor(x + half)
        return _element(line, rounded)

    return te.compute((line.size,), value, name="nearest")


def _kernel(line: ResizedAxis, distance: te.Value) -> te.Value:
    """Return a weight, by the distance of an element from a position."""
    d, one, zero = distance * _double(line.stretch), _double(1), _double(0)
    if line.method == "linear":
        return te.max(one - d, zero)
    a = line.cubic_alpha
    near = ((a + 2) * d - (a + 3)) * d * d + one
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return te.select(d <= one, near, te.select(d < _double(2), far, zero))


def _weights(line: ResizedAxis, dtype: DType) -> tuple[te.Tensor, te.Tensor]:
    """Return the elements and their weights for each element of the result: `[size, taps]`."""

    def before(i: te.Value) -> te.Value:
        return te.ceil(_position(line, i)) - _double(1)

    def place(i: te.Value, k: te.Value) -> te.Value:
        return before(i) + (k + line.first).astype("float64")

    def weight(i: te.Value, k: te.Value) -> te.Value:
        at = place(i, k)
        value = _kernel(line, te.abs(at - _position(line, i)))
        if not line.cubic_exclude:
            return value
        is_inside = te.all(at >= _double(0), at <= _double(line.extent - 1))
        return te.select(is_inside, value, _double(0))

    shape = (line.size, line.taps)
    elements = te.compute(shape, lambda i, k: _element(line, place(i, k)), name="elements")
    weights = te.compute(shape, weight, name="weights")
    if line.cubic_exclude or line.antialias:
        tap = te.reduce_axis((0, line.taps), name="tap")
        total = te.compute((line.size,), lambda i: te.sum(weights[i, tap], axis=tap), name="total")
        parts = weights
        weights = te.compute(shape, lambda i, k: parts[i, k] / total[i], name="parts")
    return elements, te.compute(shape, lambda i, k: weights[i, k].astype(dtype), name="rounded")


def _resized(x: te.Tensor, axis: int, line: ResizedAxis) -> te.Tensor:
    """Return a tensor that is resized along an axis by weights."""
    dims = static_shape(x.buffer)
    elements, weights = _weights(line, x.dtype)

    def term(i: tuple[te.Value, ...], k: Any) -> te.Value:
        return weights[i[axis], k] * x[(*i[:axis], elements[i[axis], k], *i[axis + 1 :])]

    def value(*i: te.Value) -> te.Value | te.Reduction:
        if line.taps <= MAX_UNROLLED_TAPS:
            return functools.reduce(operator.add, [term(i, k) for k in range(line.taps)])
        tap = te.reduce_axis((0, line.taps), name="tap")
        return te.sum(term(i, tap), axis=tap)

    return te.compute((*dims[:axis], line.size, *dims[axis + 1 :]), value, name="resized")


def resize_tensors(data: te.Tensor, *, extrapolation_value: float, **attrs: Any) -> te.Tensor:
    """Return images of another size; `image.resize2d` explains the attributes."""
    dims = static_shape(data.buffer)
    lines = resized_axes(dims[2:], attrs)
    result = _by_nearest(data, lines) if attrs["method"] == METHODS[0] else data
    if attrs["method"] != METHODS[0]:
        wide = sum_dtype(data.dtype)
        for axis, line in enumerate(lines, 2):
            if not line.is_unchanged:
                x = result
                result = te.compute(x.shape, lambda *i, x=x: x[i].astype(wide), name="wide")
                result = _resized(result, axis, line)
    result = _with_extrapolation(result, lines, extrapolation_value)
    return te.compute(result.shape, lambda *i: result[i].astype(data.dtype), name="resize")


def _by_nearest(data: te.Tensor, lines: list[ResizedAxis]) -> te.Tensor:
    tables = {d: _nearest(line) for d, line in enumerate(lines) if not line.is_repeated}

    def source(d: int, index: te.Value) -> te.Value:
        factor = lines[d].size // lines[d].extent
        return tables[d][index] if d in tables else index if factor == 1 else index // factor

    def value(n: te.Value, c: te.Value, *i: te.Value) -> te.Value:
        return data[(n, c, *(source(d, index) for d, index in enumerate(i)))]

    shape = (*static_shape(data.buffer)[:2], *(line.size for line in lines))
    names = [f"ax{d}" for d in range(len(shape))]
    return te.compute(shape, value, name="nearest_elements", varargs_names=names)


def _with_extrapolation(x: te.Tensor, lines: list[ResizedAxis], number: float) -> te.Tensor:
    """Return a result with a number where the position is outside of the image."""
    if lines[0].mode != "tf_crop_and_resize":
        return x

    def outside(line: ResizedAxis) -> te.Tensor:
        def value(i: te.Value) -> te.Value:
            at = _position(line, i)
            is_outside = te.any(at < _double(0), at > _double(line.extent - 1))
            return te.select(is_outside, te.const(1, "int32"), te.const(0, "int32"))

        return te.compute((line.size,), value, name="outside")

    flags = [outside(line) for line in lines]

    def value(*i: te.Value) -> te.Value:
        total = functools.reduce(te.max, [f[k] for f, k in zip(flags, i[2:], strict=True)])
        return te.select(total > 0, te.const(number, x.dtype), x[i])

    return te.compute(x.shape, value, name="cropped")
