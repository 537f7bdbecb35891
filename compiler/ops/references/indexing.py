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


def embedding_bag(p: Options, table: Array, indices: Array, *weights: Array) -> Array:
    """Return the sums of rows, by clipped indices; or their means."""
    rows = np.take(table, indices, axis=0, mode="clip")
    for weight in weights:
        rows = rows * weight[:, :, None]
    return np.asarray(rows.mean(1) if p.mode == "mean" else rows.sum(1))


def cumsum(p: Options, a: Array) -> Array:
    """Return the cumulative sums along an axis."""
    return np.cumsum(a, axis=p.axis)
