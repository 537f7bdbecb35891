"""Exact arithmetic: against rational numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler.backends.emulator.instructions.rounding import (
    add_odd,
    fma_float32,
    fma_float64,
    fma_odd,
    round_float,
)


def _nearest(exact: Fraction) -> np.float32:
    """Round a rational number to float32 by comparing its neighbours."""
    guess = np.float32(float(exact))
    candidates = [np.nextafter(guess, np.float32(s)) for s in (-np.inf, np.inf)] + [guess]

    def key(value: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(value)) - exact), int(value.view(np.uint32) & 1)

    return min(candidates, key=key)


def test_fma_of_float32_is_rounded_once() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 12, (3, 4000)).astype(np.float32)
    a = 1 + bits[0] * np.float32(2.0**-12)
    b = 1 + bits[1] * np.float32(2.0**-12)
    # Addends far below the product are what a second rounding gets wrong.
    c = (bits[2] - 2048).astype(np.float32) * np.float32(2.0**-60)
    result = fma_float32(a, b, c)
    for x, y, z, value in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert value == _nearest(exact)


def test_fma_of_subnormal_float32_is_rounded_once() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal(2000).astype(np.float32) * np.float32(2.0**-70)
    b = rng.standard_normal(2000).astype(np.float32) * np.float32(2.0**-62)
    c = rng.standard_normal(2000).astype(np.float32) * np.float32(2.0**-140)
    for x, y, z, value in zip(a, b, c, fma_float32(a, b, c), strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert value == _nearest(exact)


def test_fma_of_float64_keeps_what_cancels() -> None:
    a = np.random.default_rng(2).standard_normal(1000)
    error = fma_float64(a, a, -(a * a))
    for x, value in zip(a, error, strict=True):
        assert Fraction(value) == Fraction(x) ** 2 - Fraction(x * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_directed_modes_bracket_the_exact_sum(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    a = rng.standard_normal(500).astype(dtype)
    b = (rng.standard_normal(500) * 1e-3).astype(dtype)
    exact = [Fraction(float(x)) + Fraction(float(y)) for x, y in zip(a, b, strict=True)]
    odd = add_odd(a, b)
    down, up = (round_float(odd, dtype, mode) for mode in ("rm", "rp"))
    toward_zero, nearest = (round_float(odd, dtype, mode) for mode in ("rz", "rn"))
    for x, low, high, zero, near in zip(exact, down, up, toward_zero, nearest, strict=True):
        assert Fraction(float(low)) <= x <= Fraction(float(high))
        assert low == high or np.nextafter(low, dtype(np.inf)) == high
        assert zero == (low if x > 0 else high)
        assert near in (low, high)
        if Fraction(float(low)) + Fraction(float(high)) > 2 * x:
            assert near == low


def test_fma_of_half_types_is_rounded_once() -> None:
    a, b = np.float16(1.0009765625), np.float16(1.0009765625)
    c = np.float16(6e-8)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    result = round_float(fma_odd(a, b, c), np.float16, "rp")
    assert Fraction(float(result)) >= exact
