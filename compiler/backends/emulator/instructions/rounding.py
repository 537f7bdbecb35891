"""Exact float arithmetic: fused products, and the directed rounding modes.

A result is first computed as float64 and rounded to odd: if it is inexact, its last bit is set. A
value rounded to odd in 53 bits rounds to 24 bits or fewer as the exact value does, in each mode
(S. Boldo and G. Melquiond, "Emulation of a FMA and Correctly Rounded Sums", 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.types import Array

# The bits of a float64 below the last bit of a float32, and the value of a tie among them.
_BELOW_FLOAT32 = np.int64((1 << 29) - 1)
_TIE_FLOAT32 = np.int64(1 << 28)
# Twice the smallest normal float32: below it, ties lie elsewhere.
_SMALL = 2.0**-125
# 2^27 + 1 splits a float64 in two halves whose products are exact (Veltkamp).
_SPLITTER = 134217729.0


def fma_float32(a: Any, b: Any, c: Any) -> Array:
    """Return a * b + c in float32, rounded once, to the nearest even number."""
    product = np.multiply(a, b, dtype=np.float64)  # Exact: 24 + 24 bits fit into 53.
    total = np.asarray(product + c)
    result = total.astype(np.float32)
    doubtful = (total.view(np.int64) & _BELOW_FLOAT32) == _TIE_FLOAT32
    small = np.abs(total) < _SMALL
    if small.any():
        doubtful |= small & (total != 0)
    if doubtful.any():
        odd = _to_odd(total, product, np.broadcast_to(np.asarray(c, np.float64), total.shape))
        result[doubtful] = odd[doubtful].astype(np.float32)
    return result


def fma_odd(a: Any, b: Any, c: Any) -> Array:
    """Return a * b + c of types of at most 24 bits as float64, rounded to odd."""
    product = np.asarray(np.asarray(a, np.float64) * np.asarray(b, np.float64))
    addend = np.asarray(c, np.float64)
    return _to_odd(np.asarray(product + addend), product, addend)


def fma_float64(a: Any, b: Any, c: Any) -> Array:
    """Return a * b + c in float64, with the rounding errors of both operations added once.

    The product is exact as a sum of two float64. The result differs from the correctly rounded one
    only if the correction is a tie.
    """
    a, b, c = (np.asarray(value, np.float64) for value in (a, b, c))
    product = a * b
    error = _product_error(a, b, product)
    total = product + c
    correction = _sum_error(total, product, c) + error
    result = total + correction
    return np.where(np.isfinite(result), result, total)


def add_odd(a: Any, b: Any) -> Array:
    """Return a + b as float64, rounded to odd."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return _to_odd(np.asarray(a + b), a, b)


def round_float(value: Any, dtype: Any, mode: str) -> Array:
    """Round float64 values, exact or rounded to odd, to a smaller type.

    Args:
        value: The values.
        dtype: The type of the result.
        mode: `rn` (nearest even), `rz` (toward zero), `rm` (down) or `rp` (up).
    """
    value = np.asarray(value, np.float64)
    if np.dtype(dtype).itemsize < 4 and np.dtype(dtype) != np.float16:
        # These types convert through float32, which is rounded to odd too.
        nearest = _float32_to_odd(value).astype(dtype)
    else:
        nearest = value.astype(dtype)
    if mode in ("rn", "rna"):
        return nearest
    back = nearest.astype(np.float64)
    if mode == "rz":
        wrong, direction = np.abs(back) > np.abs(value), np.zeros_like(nearest)
    elif mode == "rm":
        wrong, direction = back > value, np.full_like(nearest, -np.inf)
    else:
        wrong, direction = back < value, np.full_like(nearest, np.inf)
    return np.where(wrong, np.nextafter(nearest, direction), nearest)


def _to_odd(total: Array, a: Array, b: Array) -> Array:
    """Return the sum `total` of a and b, rounded to odd."""
    error = _sum_error(total, a, b)
    is_even = (total.view(np.int64) & 1) == 0
    inexact = (error != 0) & np.isfinite(total) & is_even
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def _float32_to_odd(value: Array) -> Array:
    nearest = value.astype(np.float32)
    is_even = (nearest.view(np.int32) & 1) == 0
    back = nearest.astype(np.float64)
    inexact = (back != value) & np.isfinite(value) & is_even
    direction = np.where(value > back, np.inf, -np.inf).astype(np.float32)
    return np.where(inexact, np.nextafter(nearest, direction), nearest)


def _sum_error(total: Array, a: Array, b: Array) -> Array:
    """Return a + b - total exactly (D. Knuth's TwoSum)."""
    rest = total - a
    return (a - (total - rest)) + (b - rest)


def _product_error(a: Array, b: Array, product: Array) -> Array:
    """Return a * b - product exactly (T. Dekker's product)."""
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _high(value: Array) -> Array:
    scaled = _SPLITTER * value
    return scaled - (scaled - value)
