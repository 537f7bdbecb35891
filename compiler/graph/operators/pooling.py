"""Pools of one to three spatial dimensions; channels come before space.

The numbers of `padding` are those before each dimension, then those after. The padding of a maximum
is smaller than any element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import static
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import Infer, Reference, Tensors, graph_operator
from compiler.graph.operators.arrays import is_float_array, widened
from compiler.graph.operators.checks import check_rank
from compiler.graph.operators.types import check_accepts
from compiler.graph.operators.windows import Steps, window_elements
from compiler.ir.core.dtypes import sum_dtype
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.epilogue import converted
from compiler.ops.tensors.reductions import position_reducer
from compiler.ops.tensors.windows import Windows, pad, windows


def _steps(*, pool_size: tuple[int, ...], **others: Any) -> Steps:
    """Return the windows of a pool by its attributes."""
    return Steps(pool_size, **others)


def _windows(data: te.Tensor, steps: Steps) -> Windows:
    """Return the same windows as the operator library has them."""
    return windows(
        "a pool",
        static_shape(data.buffer)[2:],
        steps.kernel,
        steps.strides,
        steps.padding,
        steps.dilation,
        ceil_mode=steps.ceil_mode,
    )


def _padded(data: te.Tensor, window: Windows, value: te.Value | float) -> te.Tensor:
    dims = static_shape(data.buffer)
    return pad(data, dims, (0, 0, *window.before), (0, 0, *window.after), value=value)


def _axes(window: Windows) -> list[te.ReduceAxis]:
    return [te.reduce_axis((0, k), name=f"rv{n}") for n, k in enumerate(window.kernel)]


def _pooled(
    data: te.Tensor,
    window: Windows,
    value: te.Value | float,
    reduce: Callable[[te.Value, list[te.ReduceAxis]], te.Reduction],
    name: str,
) -> te.Tensor:
    """Return a reduction of each window; `reduce` takes an element and the axes of a window."""
    padded, axes = _padded(data, window, value), _axes(window)

    def element(*i: te.Value) -> te.Reduction:
        return reduce(padded[(i[0], i[1], *window.places(i[2:], axes))], axes)

    return te.compute(_shape(data, window), element, name=name, varargs_names=_names(data))


def _shape(data: te.Tensor, window: Windows) -> tuple[int, ...]:
    return (*static_shape(data.buffer)[:2], *window.count)


def _names(data: te.Tensor) -> list[str]:
    return [f"ax{axis}" for axis in range(data.ndim)]


def _elements(data: Array, steps: Steps, value: float = 0) -> Iterator[Array]:
    """Yield, for each position in a window, that element of all windows."""
    counts = static(steps.counts("a pool", data.shape[2:]))
    return (image for _, image in window_elements(data, steps, counts, value))


def _max_pool(data: te.Tensor, **attrs: Any) -> te.Tensor:
    window, least = _windows(data, _steps(**attrs)), te.min_value(data.dtype)
    return _pooled(data, window, least, lambda x, axes: te.max(x, axis=axes), "pool_max")


def _max_pool_arrays(data: Array, **attrs: Any) -> Array:
    elements = _elements(data, _steps(**attrs), _least(data))
    result = next(elements)
    for element in elements:
        result = np.maximum(result, element)
    return result


def _least(data: Array) -> float:
    return -math.inf if is_float_array(data) else int(np.iinfo(data.dtype).min)


def _positions(data: te.Tensor, **attrs: Any) -> te.Tensor:
    window = _windows(data, _steps(**attrs))
    padded, axes = _padded(data, window, te.min_value(data.dtype)), _axes(window)
    reducer = position_reducer("pool_positions", is_max=True)

    def element(*i: te.Value) -> te.Reduction:
        places = window.places(i[2:], axes)
        position: te.Value = te.const(0, "int64")
        for at, size, before in zip(places, window.sizes, window.before, strict=True):
            position = position * size + (at - before).astype("int64")
        extreme: te.Reduction = reducer((position, padded[(i[0], i[1], *places)]), axis=axes)
        return extreme

    shape, names = _shape(data, window), _names(data)
    pair: Any = te.compute(shape, element, name="found", varargs_names=names)
    positions: te.Tensor = pair[0]
    return te.compute(shape, lambda *i: positions[i], name="positions", varargs_names=names)


def _positions_arrays(data: Array, **attrs: Any) -> Array:
    steps, least = _steps(**attrs), _least(data)
    space = data.shape[2:]
    places = np.broadcast_to(np.arange(math.prod(space)).reshape(space), data.shape)
    positions = np.stack(list(_elements(places, steps, -1)))
    values = np.stack(list(_elements(data, steps, least)))
    # The padding is no element, even if all elements are as small.
    order = np.where(positions < 0, -np.inf, values)
    first = np.argmax(order, axis=0)[np.newaxis]
    return np.asarray(np.take_along_axis(positions, first, axis=0)[0])


def _avg_pool(data: te.Tensor, *, count_include_pad: bool, **attrs: Any) -> te.Tensor:
    steps = _steps(**attrs)
    window, dtype, rank = _windows(data, steps), sum_dtype(data.dtype), len(steps.kernel)

    def total(x: te.Value, axes: list[te.ReduceAxis]) -> te.Reduction:
        return te.sum(x.astype(dtype), axis=axes)

    sums = _pooled(data, window, 0, total, "pool_sum")
    margins = steps.padding if count_include_pad else (0,) * 2 * rank
    low = [-before for before in margins[:rank]]
    high = [size + after for size, after in zip(window.sizes, margins[rank:], strict=True)]

    def mean(*i: te.Value) -> te.Value:
        count: te.Value | int = 1
        for axis, at in enumerate(i[2:]):
            count = count * _count(at, axis, window, low[axis], high[axis])
        divisor = count.astype(dtype) if isinstance(count, te.Value) else float(count)
        return (sums[i] / divisor).astype(data.dtype)

    return te.compute(_shape(data, window), mean, name="pool_avg", varargs_names=_names(data))


def _count(at: te.Value, axis: int, window: Windows, low: int, high: int) -> te.Value | int:
    """Return how many elements of a window are from `low` to `high` in one dimension."""
    kernel, gap, stride = window.kernel[axis], window.dilation[axis], window.stride[axis]
    begin = at * stride - window.before[axis]
    last = (window.count[axis] - 1) * stride - window.before[axis] + gap * (kernel - 1)
    first: te.Value | int = 0
    end: te.Value | int = kernel
    if window.before[axis] > -low:
        first = (te.max(low - begin, 0) + (gap - 1)) // gap
    if last >= high:
        end = te.min((high - begin + (gap - 1)) // gap, kernel)
    return end - first


def _avg_pool_arrays(data: Array, *, count_include_pad: bool, **attrs: Any) -> Array:
    steps = _steps(**attrs)
    total: Any = sum(_elements(widened(data), steps))
    counted, rank = np.ones((1, 1, *data.shape[2:])), len(steps.kernel)
    sides = list(zip(steps.padding[:rank], steps.padding[rank:], strict=True))
    margins = [(0, 0), (0, 0), *sides]
    # Elements beyond the padding, which the last window may reach, never count.
    counted = np.pad(counted, margins, constant_values=float(count_include_pad))
    inside = Steps(steps.kernel, steps.strides, (0,) * 2 * rank, steps.dilation)
    counts = total.shape[2:]
    number: Any = sum(image for _, image in window_elements(counted, inside, counts))
    return np.asarray(total / number)


def _lp_pool(data: te.Tensor, *, p: int, **attrs: Any) -> te.Tensor:
    window, dtype = _windows(data, _steps(**attrs)), sum_dtype(data.dtype)

    def total(x: te.Value, axes: list[te.ReduceAxis]) -> te.Reduction:
        size = te.abs(x.astype(dtype))
        return te.sum({1: size, 2: size * size}.get(p, te.power(size, float(p))), axis=axes)

    sums = _pooled(data, window, 0, total, "pool_sum")
    if p == 1:
        return converted(sums, data.dtype)

    def root(*i: te.Value) -> te.Value:
        norm = te.sqrt(sums[i]) if p == 2 else te.power(sums[i], 1.0 / p)
        return norm.astype(data.dtype)

    return te.compute(_shape(data, window), root, name="pool_norm", varargs_names=_names(data))


def _lp_pool_arrays(data: Array, *, p: int, **attrs: Any) -> Array:
    total: Any = sum(_elements(np.abs(widened(data)) ** p, _steps(**attrs)))
    return np.asarray(np.power(total, 1 / p))


def _infer(name: str, data: TensorType, steps: Steps) -> TensorType:
    check_rank(name, "the image", data, len(steps.kernel) + 2)
    return TensorType((*data.shape[:2], *steps.counts(name, data.shape[2:])), data.dtype)


def _declare(rank: int) -> None:
    """Declare the pools of a number of spatial dimensions."""
    ones, zeros = (1,) * rank, (0, 0) * rank

    def infer_max(
        data: TensorType,
        *,
        pool_size: tuple[int, ...],
        strides: tuple[int, ...] = ones,
        padding: tuple[int, ...] = zeros,
        dilation: tuple[int, ...] = ones,
        ceil_mode: bool = False,
    ) -> TensorType:
        check_accepts("a maximum", "number", data)
        steps = Steps(pool_size, strides, padding, dilation, ceil_mode)
        return _infer(f"nn.max_pool{rank}d", data, steps)

    @functools.wraps(infer_max)
    def infer_positions(data: TensorType, **attrs: Any) -> TensorType:
        return TensorType(infer_max(data, **attrs).shape, "int64")

    def infer_avg(
        data: TensorType,
        *,
        pool_size: tuple[int, ...],
        strides: tuple[int, ...] = ones,
        padding: tuple[int, ...] = zeros,
        dilation: tuple[int, ...] = ones,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
    ) -> TensorType:
        name = f"nn.avg_pool{rank}d"
        check_accepts(name, "float", data)
        return _infer(name, data, Steps(pool_size, strides, padding, dilation, ceil_mode))

    def infer_lp(
        data: TensorType,
        *,
        pool_size: tuple[int, ...],
        p: int = 2,
        strides: tuple[int, ...] = ones,
        padding: tuple[int, ...] = zeros,
        dilation: tuple[int, ...] = ones,
        ceil_mode: bool = False,
    ) -> TensorType:
        name = f"nn.lp_pool{rank}d"
        check_accepts(name, "float", data)
        if p < 1:
            raise ModelError(f"{name}: p is {p}: expected 1 or more")
        return _infer(name, data, Steps(pool_size, strides, padding, dilation, ceil_mode))

    def declare(name: str, tensors: Tensors, reference: Reference, infer: Infer) -> None:
        full_name = f"nn.{name.format(rank)}"
        graph_operator(full_name, "window", tensors=tensors, reference=reference)(infer)

    declare("max_pool{}d", _max_pool, _max_pool_arrays, infer_max)
    # The position of each maximum in its image, whose rows follow each other; the first of equals.
    declare("max_pool{}d_positions", _positions, _positions_arrays, infer_positions)
    declare("avg_pool{}d", _avg_pool, _avg_pool_arrays, infer_avg)
    declare("lp_pool{}d", _lp_pool, _lp_pool_arrays, infer_lp)


for _rank in (1, 2, 3):
    _declare(_rank)
