"""Wilcoxon's signed-rank test, exact for the few pairs that a finish has.

The test asks what the signs of the differences could have been: under the null hypothesis each is
plus or minus with equal chance, whatever the size of the difference. Where a fair coin decides
which of two equal things takes which role in a pair, that holds by construction, however noise is
distributed and however much one pair resembles the next (R. A. Fisher, The Design of Experiments,
1935, section 21; F. Wilcoxon, Biometrics Bulletin 1, 1945).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def p_slower(differences: Sequence[float]) -> float:
    """Return how likely a signed-rank sum as large as this is if signs are fair coins.

    One-sided: small if `differences` are rather positive. 1 without any.
    """
    values = np.asarray(differences, np.float64)
    doubled = _doubled_ranks(np.abs(values))
    # A zero keeps its rank and has no sign (Pratt, 1959).
    signed = doubled[values != 0]
    chances = _chances_of_sums(signed)
    return float(chances[int(doubled[values > 0].sum()) :].sum())


def shift_interval(differences: Sequence[float], error_rate: float) -> tuple[float, float]:
    """Return where the centre of the differences is, but for a chance of `error_rate`.

    The interval that belongs to the test: bounded by ordered means of pairs (J. L. Hodges and
    E. L. Lehmann, 1963). Without enough differences it has no end.
    """
    means = np.sort(_means_of_pairs(differences))
    chances = np.cumsum(_chances_of_sums(np.arange(1, len(differences) + 1)))
    beyond = int(np.searchsorted(chances, error_rate / 2, side="right"))
    if beyond == 0:
        return -math.inf, math.inf
    return float(means[beyond - 1]), float(means[-beyond])


def shift(differences: Sequence[float]) -> float:
    """Return the centre of the differences, which `shift_interval` is around."""
    return float(np.median(_means_of_pairs(differences)))


def median_interval(values: Sequence[float], error_rate: float = 0.05) -> tuple[float, float]:
    """Return where the median of what `values` are drawn from is, but for `error_rate`.

    Bounded by ordered values, and so free of any distribution. With too few values for that, the
    smallest and the largest.
    """
    ordered = sorted(values)
    num = len(ordered)
    beyond, chance = 0, 0.5**num
    while 2 * chance <= error_rate and beyond < (num - 1) // 2:
        beyond += 1
        chance += math.comb(num, beyond) * 0.5**num
    low = max(beyond - 1, 0)
    return ordered[low], ordered[num - 1 - low]


def _means_of_pairs(values: Sequence[float]) -> Floats:
    """Return the means of all pairs, each value with itself among them."""
    numbers = np.asarray(values, np.float64)
    firsts, seconds = np.triu_indices(len(numbers))
    means: Floats = (numbers[firsts] + numbers[seconds]) / 2
    return means


def _doubled_ranks(sizes: Floats) -> NDArray[np.int64]:
    """Return twice the rank of each value, from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    below = np.cumsum(counts) - counts
    doubled: NDArray[np.int64] = (2 * below + counts + 1)[inverse]
    return doubled


def _chances_of_sums(ranks: NDArray[np.int64]) -> Floats:
    """Return for each sum from 0 how likely it is if each rank is added or not by a fair coin."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        added = np.zeros_like(chances)
        added[rank:] = chances[: len(chances) - rank]
        chances = (chances + added) / 2
    return chances
