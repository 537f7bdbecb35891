"""Operators on quantized values by NumPy."""

from __future__ import annotations

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.convolution import conv


def requantize(p: Options, x: Array, scale: Array) -> Array:
    """Scale sums to bytes along an axis, in float32."""
    return _requantized(p, x, scale, p.axis, p.out_dtype)


def dense(p: Options, a: Array, w: Array, scale: Array, *bias: Array) -> Array:
    """Multiply by weights, which are stored transposed, and scale by column."""
    total = sum(bias, start=(_reduced(p, a) - p.input_zero_point) @ w.T)
    return _requantized(p, total, scale, -1, p.out_dtype or p.dtype)


def conv2d(p: Options, a: Array, w: Array, scale: Array, *bias: Array) -> Array:
    """Convolve, and scale by channel."""
    total = conv(p, _reduced(p, a) - p.input_zero_point, w, *bias)
    axis = 1 if p.layout == "NCHW" else 3
    return _requantized(p, total, scale, axis, p.out_dtype or p.dtype)


def _reduced(p: Options, x: Array) -> Array:
    """Return bytes of 7 bits, if they have so many."""
    return np.minimum(x, 127) if p.reduce_range else x


def _requantized(p: Options, x: Array, scale: Array, axis: int, dtype: str) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    product = x.astype(np.float32) * scale.astype(np.float32).reshape(shape)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(product) + p.zero_point, limits.min, limits.max))
