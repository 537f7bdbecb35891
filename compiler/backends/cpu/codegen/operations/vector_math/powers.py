"""Powers: `2**(y log2 |x|)` in double precision, which leaves 24 bits after any cancellation."""

from __future__ import annotations

from math import inf, nan

from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import RegisterValue

# Adding it rounds a double to a whole number: doubles of this size are 1 apart (see exponentials).
_ROUNDING = 1.5 * 2**52
_TWO_THIRDS = 0x3FE5555555555555  # the bits of a double
_EXPONENT = -1 << 52
_BIAS = 1024
# log2((1 + s) / (1 - s)) in odd powers of s for |s| <= 1/5; its relative error is 2**-41.
_LOG2 = (
    2.885390081777652,
    0.9617966947083004,
    0.5770777722098098,
    0.41222521680897595,
    0.3193090688103834,
    0.2906120726158504,
)
# 2**r for |r| <= 1/2; its relative error is 2**-32.
_EXP2 = (
    1.0,
    0.6931471838207884,
    0.2402265092105128,
    0.05550400366859264,
    0.00961805686179178,
    0.0013341954408462899,
    0.00015461390745821903,
    1.3359830984007386e-05,
)


def power(on: Lanes, x: RegisterValue, y: RegisterValue) -> RegisterValue:
    """Return `x**y`, with C's values for the special cases (C17, F.10.4.4)."""
    double = on.as_type("float64")
    magnitude = on.magnitude(x)
    logarithm = _log2(double, on.to(double, magnitude))
    result = double.to(on, _exp2(double, double.mul(logarithm, on.to(double, y))))
    is_one = on.either(on.compare("oeq", magnitude, 1.0), on.compare("oeq", y, 0.0))
    result = on.select(is_one, 1.0, result)
    # A negative number has powers for whole exponents only; those for odd ones are negative.
    half = on.mul(y, 0.5)
    is_whole = on.compare("oeq", on.nearest(y), y)
    is_odd = on.both(is_whole, on.compare("une", on.nearest(half), half))
    sign = on.instructions.select(on.int, is_odd, on.sign(x), RegisterValue("0", 0))
    result = on.with_sign(result, sign)
    is_negative = on.both(on.compare("olt", x, 0.0), on.compare("ogt", x, -inf))
    has_none = on.both(is_negative, on.compare("une", on.nearest(y), y))
    return on.select(has_none, nan, result)


def rsqrt(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `1 / sqrt(x)`: two roundings, and the correct limits."""
    return on.div(1.0, on.instructions.intrinsic("sqrt", on.float, (x,)))


def _log2(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return log2 of a double that was a float: zero, infinity, NaN, or normal."""
    shifted = on.integer("add", on.bits(x), (_BIAS << 52) - _TWO_THIRDS)
    # k + 1024 in the bits of 2**52 + k + 1024: no CPU before AVX-512 converts 64-bit integers.
    biased = on.integer("or", on.integer("lshr", shifted, 52), 0x433 << 52)
    k = on.sub(on.from_bits(biased), 2.0**52 + _BIAS)
    exponent = on.integer("sub", on.integer("and", shifted, _EXPONENT), _BIAS << 52)
    m = on.from_bits(on.integer("sub", on.bits(x), exponent))
    s = on.div(on.sub(m, 1.0), on.add(m, 1.0))
    result = on.fma(on.polynomial(on.mul(s, s), _LOG2), s, k)
    result = on.select(on.compare("olt", x, inf), result, x)
    return on.select(on.compare("oeq", x, 0.0), -inf, result)


def _exp2(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return 2**x; far below and far above what a float can hold for the rest."""
    x = on.at_least(on.at_most(x, 200.0), -200.0)
    shifted = on.add(x, _ROUNDING + 1023)
    r = on.sub(x, on.sub(shifted, _ROUNDING + 1023))
    scale = on.from_bits(on.integer("shl", on.bits(shifted), 52))
    return on.mul(on.polynomial(r, _EXP2), scale)
