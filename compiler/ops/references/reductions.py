"""Reductions by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compiler.ops.operator import Array, Options


def _axis(p: Options) -> int | tuple[int, ...] | None:
    return tuple(p.axis) if isinstance(p.axis, Sequence) else p.axis


def reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of NumPy over the axes of the options."""
    return lambda p, a: function(a, axis=_axis(p), keepdims=p.keepdims)


def arg_extreme(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return `np.argmax` or `np.argmin` over several axes."""

    def computed(p: Options, a: Array) -> Array:
        axis = _axis(p)
        axes = range(a.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        which = sorted(dim % a.ndim for dim in axes)
        other_axes = [dim for dim in range(a.ndim) if dim not in which]
        shape = [a.shape[dim] for dim in other_axes]
        flat = function(a.transpose(*other_axes, *which).reshape(*shape, -1), axis=-1)
        ones = [1 if dim in which else a.shape[dim] for dim in range(a.ndim)]
        return flat.reshape(ones) if p.keepdims else flat

    return computed


def row_sum(_: Options, a: Array) -> Array:
    """Return the sum of each row."""
    return np.asarray(a.sum(1))


def topk(p: Options, a: Array) -> tuple[Array, Array]:
    """Return the first elements of each row in an order, and their positions."""
    order = np.argsort(-a if p.largest else a, axis=-1, kind="stable")[..., : p.k]
    return np.take_along_axis(a, order, -1), order
