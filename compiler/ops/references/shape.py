"""Operators that move elements, by NumPy."""

from __future__ import annotations

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.windows import numbers


def concat(p: Options, *parts: Array) -> Array:
    """Return arrays joined along an axis."""
    return np.concatenate(parts, axis=p.axis)


def pad(p: Options, a: Array) -> Array:
    """Return an array padded with a value."""
    before = numbers(p.pad_before, a.ndim)
    after = before if p.pad_after is None else numbers(p.pad_after, a.ndim)
    return np.pad(a, list(zip(before, after, strict=True)), constant_values=p.pad_value)


def transpose(p: Options, a: Array) -> Array:
    """Return an array with its axes in another order."""
    return a.transpose(p.axes)
