"""Logarithms: of `x = 2**k * m` with `m` from 2/3 to 4/3, by a polynomial in `m - 1`."""

from __future__ import annotations

from math import inf, log, nan

from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import RegisterValue

# The layout of a float (IEEE 754 binary32): 8 bits of exponent above 23 bits of fraction.
_LEAST_NORMAL = 2.0**-126
_TWO_THIRDS = 0x3F2AAAAB  # the bits of a float
_ONE = 0x3F800000
_EXPONENT = -0x800000
_LOG10_2_HIGH, _LOG10_2_LOW = 0.3010300099849701, -1.432098883924482e-08
# (log(1 + f) - f + f**2 / 2) / f**3 for |f| <= 1/3; the relative error of log(1 + f) is 2**-27.
_LOG1P = (
    0.33333197236061096,
    -0.24999919533729553,
    0.20011433959007263,
    -0.16674451529979706,
    0.13988839089870453,
    -0.12275619804859161,
    0.14071261882781982,
    -0.12463811784982681,
)


def log_e(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the natural logarithm."""
    k, f = _split_any(on, x)
    return _with_limits(on, x, on.fma(k, log(2), _log1p(on, f)))


def log_2(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the logarithm to the base 2; of a power of two, exactly."""
    k, f = _split_any(on, x)
    return _with_limits(on, x, on.fma(_log1p(on, f), 1 / log(2), k))


def log_10(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the logarithm to the base 10."""
    k, f = _split_any(on, x)
    low_part = on.fma(_log1p(on, f), 1 / log(10), on.mul(k, _LOG10_2_LOW))
    return _with_limits(on, x, on.fma(k, _LOG10_2_HIGH, low_part))


def log1p(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the logarithm of `1 + x`; the rounding error of the sum is added to `m - 1`."""
    u = on.add(x, 1.0)
    is_large = on.compare("ogt", x, 1.0)
    lost = on.select(is_large, on.sub(1.0, on.sub(u, x)), on.sub(x, on.sub(u, 1.0)))
    k, f, exponent = _split(on, on.bits(u))
    # 2**-k; zero for the largest numbers, whose rounding errors do not matter.
    scale = on.integer("sub", RegisterValue(str(_ONE), 0), exponent)
    scale = on.instructions.intrinsic("smax", "i32", (scale, RegisterValue("0", 0)))
    f = on.fma(lost, on.from_bits(scale), f)
    result = _with_limits(on, u, on.fma(k, log(2), _log1p(on, f)))
    return on.select(on.compare("oeq", x, 0.0), x, result)


def _split_any(on: Lanes, x: RegisterValue) -> tuple[RegisterValue, RegisterValue]:
    """Return k and m - 1, of subnormal numbers too."""
    is_small = on.compare("olt", x, _LEAST_NORMAL)
    x = on.select(is_small, on.mul(x, 2.0**23), x)
    k, f, _ = _split(on, on.bits(x))
    return on.add(k, on.select(is_small, -23.0, 0.0)), f


def _split(on: Lanes, x: RegisterValue) -> tuple[RegisterValue, RegisterValue, RegisterValue]:
    """Return k, m - 1 and k * 2**23 for the bits of a normal number."""
    exponent = on.integer("and", on.integer("sub", x, _TWO_THIRDS), _EXPONENT)
    f = on.sub(on.from_bits(on.integer("sub", x, exponent)), 1.0)
    k = on.instructions.cast("sitofp", "i32", "float", on.integer("ashr", exponent, 23))
    return k, f, exponent


def _log1p(on: Lanes, f: RegisterValue) -> RegisterValue:
    """Return log(1 + f) for |f| <= 1/3."""
    return on.fma(on.mul(f, f), on.polynomial(f, (-0.5, *_LOG1P)), f)


def _with_limits(on: Lanes, x: RegisterValue, result: RegisterValue) -> RegisterValue:
    """Return the result, or the limit for zero, infinity, NaN and negative numbers."""
    result = on.select(on.compare("olt", x, inf), result, x)
    below = on.select(on.compare("oeq", x, 0.0), -inf, nan)
    return on.select(on.compare("ugt", x, 0.0), result, below)
