"""Fit the polynomials of the code generator: print their coefficients and their errors.

The coefficients are used in `compiler/backends/cpu/codegen/operations/vector_math`.

Each is the minimax polynomial of a weighted error, found by Remez's exchange on a fine grid. Its
coefficients are rounded one after another, the lowest power first. After each rounding, the others
are fitted again to the remainder, so they compensate for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfc

Array = NDArray[Any]

EXCHANGES = 60
NODES = 6001
TINY = 1e-7


@dataclass(frozen=True)
class Fit:
    """A function on an interval, to be fitted by powers of x; `weight` scales its error."""

    name: str
    interval: tuple[float, float]
    powers: Sequence[int]
    function: Callable[[Array], Array]
    weight: Callable[[Array], Array]
    kind: type = np.float32


def remez(x: Array, y: Array, weight: Array, powers: Sequence[int]) -> Array:
    """Return the coefficients with the least largest `|weight * (y - polynomial)|`.

    Args:
        x: The grid, in ascending order.
        y: The values of the function on the grid.
        weight: The factors of the errors on the grid.
        powers: The powers of x in the polynomial.
    """
    span = np.abs(x).max()
    basis = np.stack([(x / span) ** p for p in powers], 1) * weight[:, None]
    target = (y * weight).astype(np.float64)
    n = len(powers)
    places = np.unique(((1 - np.cos(np.pi * np.arange(n + 1) / n)) / 2 * (len(x) - 1)).astype(int))
    best, least = np.zeros(n), np.inf
    for _ in range(EXCHANGES):
        signs = (-1.0) ** np.arange(len(places))
        solution = np.linalg.lstsq(np.c_[basis[places], signs], target[places], rcond=None)[0]
        errors = target - basis @ solution[:-1]
        if np.abs(errors).max() < least:
            best, least = solution[:-1], np.abs(errors).max()
        extremes = _extremes(errors, n + 1)
        if len(extremes) <= n or list(extremes) == list(places):
            break
        places = extremes
    return np.asarray(best / span ** np.array(powers, np.float64))


def _extremes(errors: Array, most: int) -> Array:
    """Return where the error is largest between its changes of sign, at most so many of them."""
    changes = np.nonzero(np.diff(np.where(errors < 0, -1, 1)))[0] + 1
    ends = [0, *changes, len(errors)]
    found = [a + int(np.abs(errors[a:b]).argmax()) for a, b in pairwise(ends)]
    while len(found) > most:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return np.array(found)


def fitted(fit: Fit) -> tuple[list[float], float]:
    """Return the rounded coefficients, and the largest weighted error with them."""
    low, high = fit.interval
    x = (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(NODES) / (NODES - 1))
    x = x[np.abs(x) > TINY]
    rest, weight = fit.function(x.astype(np.longdouble)), fit.weight(x)
    coefficients, powers = [], list(fit.powers)
    while powers:
        lowest = fit.kind(remez(x, rest, weight, powers)[0])
        rest = rest - np.longdouble(lowest) * x.astype(np.longdouble) ** powers.pop(0)
        coefficients.append(float(lowest))
    return coefficients, float(np.abs(rest * weight).max())


HALF_LN2 = float(np.log(2) / 2 * 1.0001)
QUARTER = np.pi / 4 * 1.0005
FITS = (
    Fit("exp", (-HALF_LN2, HALF_LN2), range(2, 7), lambda x: np.expm1(x) - x, lambda x: np.exp(-x)),
    Fit(
        "expm1 of tanh",
        (-HALF_LN2, HALF_LN2),
        range(2, 7),
        lambda x: np.expm1(x) - x,
        lambda x: 1 / np.abs(np.expm1(x)),
    ),
    Fit(
        "log1p",
        (-1 / 3 - 1e-6, 1 / 3 + 1e-6),
        range(3, 11),
        lambda x: np.log1p(x) - x + x * x / 2,
        lambda x: 1 / np.abs(np.log1p(x)),
    ),
    Fit("sin", (1e-4, QUARTER), (3, 5, 7), lambda x: np.sin(x) - x, lambda x: 1 / np.sin(x)),
    Fit(
        "cos",
        (1e-4, QUARTER),
        (4, 6, 8),
        lambda x: np.cos(x) - 1 + x * x / 2,
        lambda x: 1 / np.cos(x),
    ),
    Fit(
        "erf, near",
        (1e-4, 0.92),
        range(1, 13, 2),
        lambda x: erf(x.astype(np.float64)) - x,
        lambda x: 1 / erf(x),
    ),
    Fit(
        "erf, far",
        (0.92, 4.0),
        range(7),
        lambda x: np.log2(erfc(x.astype(np.float64))).astype(np.longdouble),
        lambda x: erfc(x) * np.log(2) / erf(x),
    ),
    Fit(
        "erfc, anywhere",
        (0.0, 4.0),
        range(1, 9),
        lambda x: np.log2(erfc(x.astype(np.float64))).astype(np.longdouble),
        lambda x: erfc(x) * np.log(2),
    ),
    Fit(
        "exp2 of erf",
        (-0.5001, 0.5001),
        range(1, 7),
        lambda x: np.exp2(x) - 1,
        lambda x: np.exp2(-x),
    ),
    Fit(
        "log2 of pow",
        (1e-3, 0.2001),
        range(1, 13, 2),
        lambda x: (np.log1p(x) - np.log1p(-x)) / np.log(np.longdouble(2)),
        lambda x: 1 / (2 * np.arctanh(x)),
        np.float64,
    ),
    Fit(
        "exp2 of pow",
        (-0.5001, 0.5001),
        range(1, 8),
        lambda x: np.exp2(x) - 1,
        lambda x: np.exp2(-x),
        np.float64,
    ),
)


def main() -> None:
    """Print all polynomials."""
    for fit in FITS:
        coefficients, error = fitted(fit)
        print(f"{fit.name}: error 2**{np.log2(error):.1f}")
        for power, coefficient in zip(fit.powers, coefficients, strict=True):
            print(f"    x**{power}: {coefficient!r}")


if __name__ == "__main__":
    main()
