"""Sine, cosine, tangent: `x = n pi/2 + r`, then polynomials in `r`, chosen by `n` mod 4.

The product `n pi/2` is subtracted in three parts by fused multiply-adds (Cody and Waite; see
`exponentials`). Their 72 bits suffice up to 2**17; lanes beyond it call the C library, in double
precision.
"""

from __future__ import annotations

from math import pi

from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import RegisterValue

# Adding it rounds a float to a whole number: floats of this size are 1 apart (see exponentials).
_ROUNDING = 1.5 * 2**23
# Beyond it the C library computes: `n` times a part of `_HALF_PI` would need more than a float's
# 24 bits, and the reduced angle would lose digits.
_FARTHEST = 2.0**17
# All positive, so that an angle of -0.0 keeps its sign.
_HALF_PI = (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15)
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in even powers of r, for |r| <= pi / 4;
# relative errors 2**-28 and 2**-33.
_SIN = (
    -0.16666655242443085,
    0.008332188241183758,
    -0.0001951809535967186,
)
_COS = (
    0.04166664555668831,
    -0.0013887309469282627,
    2.4432327336398885e-05,
)


def sin(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the sine of an angle in radians."""
    quadrant, sine, cosine = _parts(on, x, 0)
    return _unless_far(on, x, _chosen(on, quadrant, sine, cosine), "sin")


def cos(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the cosine of an angle in radians."""
    quadrant, sine, cosine = _parts(on, x, 1)
    return _unless_far(on, x, _chosen(on, quadrant, sine, cosine), "cos")


def tan(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the tangent of an angle in radians: sin / cos, or -cos / sin in odd quadrants."""
    quadrant, sine, cosine = _parts(on, x, 0)
    swaps = _is_set(on, quadrant, 1)
    above = on.select(swaps, cosine, sine)
    below = on.select(swaps, sine, cosine)
    sign = on.integer("shl", quadrant, 31)
    return _unless_far(on, x, on.div(on.flipped(above, sign), below), "tan")


def _parts(
    on: Lanes, x: RegisterValue, ahead: int
) -> tuple[RegisterValue, RegisterValue, RegisterValue]:
    """Return the quadrant plus `ahead`, and the sine and the cosine of the remaining angle."""
    shifted = on.fma(x, 2 / pi, _ROUNDING + ahead)
    n = on.sub(shifted, _ROUNDING + ahead)
    r = x
    for part in _HALF_PI:
        r = on.fma(n, -part, r)
    square = on.mul(r, r)
    sine = on.mul(r, on.polynomial(square, (1.0, *_SIN)))
    return on.bits(shifted), sine, on.polynomial(square, (1.0, -0.5, *_COS))


def _chosen(
    on: Lanes, quadrant: RegisterValue, sine: RegisterValue, cosine: RegisterValue
) -> RegisterValue:
    """Return the sine of the whole angle."""
    result = on.select(_is_set(on, quadrant, 1), cosine, sine)
    sign = on.integer("shl", on.integer("and", quadrant, 2), 30)
    return on.flipped(result, sign)


def _is_set(on: Lanes, quadrant: RegisterValue, bit: int) -> RegisterValue:
    return on.instructions.icmp(
        "ne", on.int, on.integer("and", quadrant, bit), RegisterValue("0", 0)
    )


def _unless_far(on: Lanes, x: RegisterValue, result: RegisterValue, name: str) -> RegisterValue:
    def slow() -> RegisterValue:
        return on.library(name, x)

    is_far = on.compare("ogt", on.magnitude(x), _FARTHEST)
    return on.unless_any(is_far, result, slow)
