"""The exponential function to several bases, and functions of it.

`e**x = 2**n * e**r` with `n` the whole number nearest to `x / ln 2`, so that `|r| <= ln(2) / 2`.
The product `n ln 2` is subtracted in two parts (W. J. Cody and W. Waite, Software Manual for the
Elementary Functions, 1980). Adding 1.5 * 2**23 to a number rounds it to a whole one, which then
lies in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, log2

from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import RegisterValue

_ROUNDING = 1.5 * 2**23
_LOG2_E = 1 / log(2)
_LN2_HIGH, _LN2_LOW = 0.6931471824645996, -1.9046542121259336e-09
_LOG10_2_HIGH, _LOG10_2_LOW = 0.3010300099849701, -1.432098883924482e-08
# (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2; the relative error of e**r is at most 2**-28.
_EXP = (
    0.4999999403953552,
    0.16666516661643982,
    0.04166810214519501,
    0.008369192481040955,
    0.001383890281431377,
)
# The same, but for the relative error of e**r - 1: 2**-26.
_EXPM1 = (
    0.4999999701976776,
    0.16666539013385773,
    0.04166775569319725,
    0.008367118425667286,
    0.0013835837598890066,
)


def exp(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `e**x`; infinity above 88.72, zero below -103.97, subnormal numbers in between."""
    return _exp_of_at_most_89(on, on.at_most(x, 89.0))


def _exp_of_at_most_89(on: Lanes, x: RegisterValue) -> RegisterValue:
    x = on.at_least(x, -104.0)
    shifted = on.fma(x, _LOG2_E, _ROUNDING + 254)
    n = on.sub(shifted, _ROUNDING + 254)
    r = on.fma(n, -_LN2_LOW, on.fma(n, -_LN2_HIGH, x))
    return _scaled(on, _power_of_e(on, r), shifted)


def exp2(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `2**x`, exactly where `x` is a whole number."""
    x = on.at_least(on.at_most(x, 129.0), -151.0)
    shifted = on.add(x, _ROUNDING + 254)
    n = on.sub(shifted, _ROUNDING + 254)
    return _scaled(on, _power_of_e(on, on.mul(on.sub(x, n), log(2))), shifted)


def exp10(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `10**x`."""
    x = on.at_least(on.at_most(x, 39.0), -46.0)
    shifted = on.fma(x, log2(10), _ROUNDING + 254)
    n = on.sub(shifted, _ROUNDING + 254)
    r = on.fma(n, -_LOG10_2_LOW, on.fma(n, -_LOG10_2_HIGH, x))
    return _scaled(on, _power_of_e(on, on.mul(r, log(10))), shifted)


def _power_of_e(on: Lanes, r: RegisterValue) -> RegisterValue:
    """Return `e**r` for a small `r`."""
    return on.polynomial(r, (1.0, 1.0, *_EXP))


def _scaled(on: Lanes, p: RegisterValue, shifted: RegisterValue) -> RegisterValue:
    """Return `p * 2**n`, where n + 254 is in the low bits of `shifted`.

    Each factor has half of the exponent. So a subnormal result is rounded once, and no factor
    overflows unless the result does.
    """
    biased = on.bits(shifted)
    half = on.integer("lshr", biased, 1)
    other_half = on.integer("sub", biased, half)
    first = on.from_bits(on.integer("shl", half, 23))
    second = on.from_bits(on.integer("shl", other_half, 23))
    return on.mul(on.mul(p, first), second)


def sigmoid(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `1 / (1 + e**-x)`."""
    return logistic(on, x, partial(_exp_of_at_most_89, on))


def logistic(
    on: Lanes, x: RegisterValue, exp: Callable[[RegisterValue], RegisterValue]
) -> RegisterValue:
    """Return `1 / (1 + e**-x)`; below zero as `e**x / (1 + e**x)`, which never overflows.

    Args:
        on: The arithmetic.
        x: The argument.
        exp: Returns `e**x` of an `x` that is not above zero.
    """
    t = exp(on.negative(on.magnitude(x)))
    above = on.select(on.compare("olt", x, 0.0), t, 1.0)
    return on.div(above, on.add(t, 1.0))


def tanh(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `E / (E + 2)` where `E = e**2|x| - 1`, with the sign of `x`.

    `E = 2**n (e**r - 1) + (2**n - 1)` has no cancellation, and is accurate near zero, too. From
    9.02 on, the nearest float is 1.
    """
    magnitude = on.magnitude(x)
    y = on.at_most(on.add(magnitude, magnitude), 18.5)
    shifted = on.fma(y, _LOG2_E, _ROUNDING + 127)
    n = on.sub(shifted, _ROUNDING + 127)
    r = on.fma(n, -_LN2_LOW, on.fma(n, -_LN2_HIGH, y))
    power = on.from_bits(on.integer("shl", on.bits(shifted), 23))
    less_one = on.fma(on.mul(r, r), on.polynomial(r, _EXPM1), r)
    e = on.fma(power, less_one, on.sub(power, 1.0))
    return on.with_sign(on.div(e, on.add(e, 2.0)), on.sign(x))
