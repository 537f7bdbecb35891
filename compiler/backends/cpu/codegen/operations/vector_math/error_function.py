"""The error function: near zero a polynomial, beyond it `1 - 2**p(|x|)`.

`p` approximates log2(erfc), which is so smooth that few terms suffice. The farther from zero, the
less its errors matter. `1 + erf(x)`, as in GELU, is near one where `erf` is near zero. So one such
`p` suffices for it.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import RegisterValue

# Adding it rounds a float to a whole number: floats of this size are 1 apart (see exponentials).
_ROUNDING = 1.5 * 2**23
# A chosen border between the two polynomials, each fitted to its own side.
_BORDER = 0.92
# erf(x) / x - 1 in even powers of x up to the border; its relative error is 2**-26.
_NEAR = (
    0.12837915122509003,
    -0.3761250078678131,
    0.11281877011060715,
    -0.026768580079078674,
    0.004995853174477816,
    -0.0006003794260323048,
)
# log2(erfc(x)) from the border to 4; the relative error of erf is 2**-29.
_FAR = (
    -0.0002823006361722946,
    -1.62689208984375,
    -0.9192594289779663,
    -0.14994199573993683,
    0.032066985964775085,
    -0.004390557762235403,
    0.0002826958952937275,
)
# log2(erfc(x)) from 0 on; the absolute error of erfc is 2**-25.9. It falls to minus infinity.
_ANYWHERE = (
    0.0,
    -1.6279085874557495,
    -0.918416440486908,
    -0.14848150312900543,
    0.028253646567463875,
    -0.0007748184725642204,
    -0.0014891864266246557,
    0.0004453841829672456,
    -4.533779065241106e-05,
)
# 2**r for |r| <= 1/2; its relative error is 2**-27.
_EXP2 = (
    1.0,
    0.6931472420692444,
    0.24022655189037323,
    0.05550272390246391,
    0.009617063216865063,
    0.0013418222079053521,
    0.0001582000550115481,
)


def erf(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return the error function; from 3.92 on, the nearest float is 1."""
    magnitude = on.magnitude(x)
    near = on.fma(on.polynomial(on.mul(x, x), _NEAR), magnitude, magnitude)
    p = on.polynomial(on.at_most(magnitude, 4.0), _FAR)
    mantissa, power = _exp2(on, p)
    far = on.fma(mantissa, on.negative(power), 1.0)
    is_far = on.compare("ogt", magnitude, _BORDER)
    return on.with_sign(on.select(is_far, far, near), on.sign(x))


def one_plus_erf(on: Lanes, x: RegisterValue) -> RegisterValue:
    """Return `1 + erf(x)`, which is `erfc(-x)`: `2**p(|x|)` below zero, else `2 - 2**p(|x|)`."""
    p = on.at_least(on.polynomial(on.magnitude(x), _ANYWHERE), -127.0)
    mantissa, power = _exp2(on, p)
    above = on.fma(mantissa, on.negative(power), 2.0)
    return on.select(on.compare("olt", x, 0.0), on.mul(mantissa, power), above)


def _exp2(on: Lanes, p: RegisterValue) -> tuple[RegisterValue, RegisterValue]:
    """Return `2**p` for -127 <= p <= 0, as a number near one and a power of two.

    The power is zero instead of `2**-127`.
    """
    shifted = on.add(p, _ROUNDING + 127)
    r = on.sub(p, on.sub(shifted, _ROUNDING + 127))
    power = on.from_bits(on.integer("shl", on.bits(shifted), 23))
    return on.polynomial(r, _EXP2), power
