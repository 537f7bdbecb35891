"""Products of floats with quantized weights by NumPy."""

from __future__ import annotations

import numpy as np

from compiler.ops.operator import Array, Options


def dense_int4(_: Options, a: Array, w: Array, scale: Array, *zero_point: Array) -> Array:
    """Multiply by weights of 4 bits, unpacked to an array of floats."""
    halves = np.concatenate([w % 16, w // 16], axis=2)
    zeros = zero_point[0][:, :, None] if zero_point else 8
    weights = (halves - zeros) * scale[:, :, None]
    return np.asarray(a @ weights.reshape(len(w), -1).T)


def dense_int8(_: Options, a: Array, w: Array, scale: Array) -> Array:
    """Multiply by weights of 8 bits, scaled to an array of floats."""
    weights = w.reshape(*scale.shape, -1) * scale[:, :, None]
    return np.asarray(a @ weights.reshape(w.shape).T)
