"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from compiler import te
from compiler.graph.extents import Extent
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axes
from compiler.graph.operators.elementwise.maps import widened
from compiler.graph.operators.types import Accepts, check_accepts
from compiler.ir.core.dtypes import DType, has_infinity, is_float, sum_dtype
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors import reductions

Index: TypeAlias = tuple[te.Value, ...]
Reduce: TypeAlias = Callable[[te.Tensor, tuple[int, ...], bool], te.Tensor]
"""Takes a tensor, at least one axis, and whether the result keeps the axes."""


def reduced(
    x: te.Tensor,
    axes: tuple[int, ...],
    keepdims: bool,
    element: Callable[[Index, Index, list[te.ReduceAxis]], te.Reduction],
    name: str,
) -> te.Tensor:
    """Return a reduction of a tensor over at least one axis.

    Args:
        x: The tensor.
        axes: The axes, in ascending order.
        keepdims: Whether the result keeps them, with an extent of 1.
        element: Takes an index of the tensor, one of the result, and the axes; returns the
            reduction.
        name: The name of the result.
    """
    dims = static_shape(x.buffer)
    k = {axis: te.reduce_axis((0, dims[axis]), f"k{axis}") for axis in axes}

    def value(*i: te.Value) -> te.Reduction:
        rest = iter([n for axis, n in enumerate(i) if not (keepdims and axis in axes)])
        index = tuple(k[axis] if axis in axes else next(rest) for axis in range(len(dims)))
        return element(index, i, list(k.values()))

    extents = reduced_shape(dims, axes, keepdims)
    return te.compute([n for n in extents if isinstance(n, int)], value, name=name)


def reduced_shape(
    shape: Sequence[Extent], axes: Sequence[int], keepdims: bool
) -> tuple[Extent, ...]:
    """Return the shape of a reduction."""
    if keepdims:
        return tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _declare(
    name: str, reduce: Reduce, reference: Callable[..., Array], accepts: Accepts = "number"
) -> None:
    def tensors(x: te.Tensor, *, axis: tuple[int, ...] | None, keepdims: bool) -> te.Tensor:
        axes = check_axes(name, axis, x.ndim)
        if not axes:
            return te.compute(x.shape, lambda *i: x[i], name=name)
        return reduce(x, axes, keepdims)

    def by_numpy(x: Array, *, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
        axes = check_axes(name, axis, x.ndim)
        if not axes:
            return x
        return np.asarray(reference(widened(x), axis=axes, keepdims=keepdims)).astype(x.dtype)

    @graph_operator(name, "reduce", tensors=tensors, reference=by_numpy)
    def infer(
        x: TensorType, *, axis: tuple[int, ...] | None = None, keepdims: bool = False
    ) -> TensorType:
        check_accepts(name, accepts, x)
        return TensorType(reduced_shape(x.shape, check_axes(name, axis, x.rank), keepdims), x.dtype)


def _sum(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    return reductions.sum(x, axis=axes, keepdims=keepdims)


def _prod(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    return reductions.prod(x, axis=axes, keepdims=keepdims)


def _mean(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    if is_float(x.dtype):
        return reductions.mean(x, axis=axes, keepdims=keepdims)
    total = _sum(x, axes, keepdims)
    dims = static_shape(x.buffer)
    count = te.const(math.prod(dims[axis] for axis in axes), x.dtype)
    return te.compute(total.shape, lambda *i: te.truncdiv(total[i], count), name="mean")


def _mean_reference(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.mean(x, axis=axis, keepdims=keepdims))
    total = np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype).astype(object)
    count = math.prod(x.shape[k] for k in axis)
    return np.asarray(np.frompyfunc(lambda n: abs(n) // count * (1 if n > 0 else -1), 1, 1)(total))


def _extreme(is_max: bool) -> Reduce:
    def reduce(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
        combine = te.max if is_max else te.min
        # The smallest finite number would be the maximum of elements that are all -infinity.
        start = _infinity(x.dtype, is_negative=is_max)
        return reduced(
            x,
            axes,
            keepdims,
            lambda index, _, k: combine(x[index], axis=k, init=start),
            "max" if is_max else "min",
        )

    return reduce


def _infinity(dtype: DType, *, is_negative: bool) -> te.Value | None:
    if not (is_float(dtype) and has_infinity(dtype)):
        return None
    return te.const(-math.inf if is_negative else math.inf, dtype)


def _logsumexp(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    dtype = sum_dtype(x.dtype)
    largest = _extreme(is_max=True)(x, axes, keepdims)

    def shift(i: Index) -> te.Value:
        # An infinite maximum is not subtracted: the difference would be NaN.
        value = largest[i].astype(dtype)
        return te.select(te.abs(value) == math.inf, te.const(0, dtype), value)

    def element(index: Index, i: Index, k: list[te.ReduceAxis]) -> te.Reduction:
        return te.sum(te.exp(x[index].astype(dtype) - shift(i)), axis=k)

    total = reduced(x, axes, keepdims, element, "total")
    return te.compute(
        total.shape, lambda *i: (te.log(total[i]) + shift(i)).astype(x.dtype), name="logsumexp"
    )


def _logsumexp_reference(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    largest = np.max(x, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0)
    total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return np.asarray(total if keepdims else np.squeeze(total, axis))


_declare("sum", _sum, np.sum)
_declare("prod", _prod, np.prod)
_declare("mean", _mean, _mean_reference)
_declare("max", _extreme(is_max=True), np.max)
_declare("min", _extreme(is_max=False), np.min)
_declare("logsumexp", _logsumexp, _logsumexp_reference, "float")
