"""Operators that gather elements by indices, by NumPy."""

from __future__ import annotations

import numpy as np

from compiler.ops.operator import Array, Options


def take(p: Options, a: Array, indices: Array) -> Array:
    """Return slices along an axis, by clipped indices."""
    return np.take(a, indices, axis=p.axis, mode="clip")


def gather(p: Options, a: Array, indices: Array) -> Array:
    """Return elements along an axis, by clipped indices."""
    axis = p.axis % a.ndim
    clipped = np.clip(indices, 0, a.shape[axis] - 1)
    part = a[tuple(slice(None if d == axis else n) for d, n in enumerate(indices.shape))]
    return np.take_along_axis(part, clipped, axis)


def embedding(_: Options, table: Array, indices: Array) -> Array:
    """Return rows of a table, by clipped indices."""
    return np.take(table, indices, axis=0, mode="clip")


def embedding_bag(p: Options, table: Array, indices: Array, *others: Array) -> Array:
    """Return the sums of rows, by clipped indices; or their means."""
    rows = np.take(table, indices, axis=0, mode="clip")
    if p.weights:
        rows = rows * others[0][..., None]
    if p.total is None:
        return np.asarray(rows.mean(1) if p.mode == "mean" else rows.sum(1))
    starts, ends = others[-1][:-1, None], others[-1][1:, None]
    positions = starts + np.arange(p.length)
    is_in_bag = positions < ends
    rows = np.where(is_in_bag[..., None], np.take(rows, positions, axis=0, mode="clip"), 0)
    counts = np.maximum(is_in_bag.sum(1, keepdims=True), 1) if p.mode == "mean" else 1
    return np.asarray(rows.sum(1) / counts)


def cumsum(p: Options, a: Array) -> Array:
    """Return the cumulative sums along an axis."""
    return np.cumsum(a, axis=p.axis)
