"""Wilcoxon's signed-rank test, exact for the few pairs of a final comparison.

The test considers all possible signs of the differences: under the null hypothesis each is plus or
minus with equal chance, whatever the size of the difference. If a fair coin decides which of two
equal kernels takes which role in a pair, that holds by construction, for any distribution of noise
and any dependence between pairs (R. A. Fisher, The Design of Experiments, 1935, section 21; F.
Wilcoxon, Biometrics Bulletin 1, 1945).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def p_slower(differences: Sequence[float]) -> float:
    """Return the probability of a signed-rank sum at least this large if signs are fair coins.

    One-sided: small if `differences` are mostly positive. 1 without any.
    """
    values = np.asarray(differences, np.float64)
    doubled = _doubled_ranks(np.abs(values))
    # A zero keeps its rank and has no sign (Pratt, 1959).
    signed = doubled[values != 0]
    chances = _chances_of_sums(signed)
    return float(chances[int(doubled[values > 0].sum()) :].sum())


def shift_interval(differences: Sequence[float], error_rate: float) -> tuple[float, float]:
    """Return the interval of the centre of the differences, with the given error rate.

    It is the interval of the test: bounded by ordered means of pairs (J. L. Hodges and
    E. L. Lehmann, 1963). Without enough differences it is unbounded.
    """
    means = np.sort(_means_of_pairs(differences))
    chances = np.cumsum(_chances_of_sums(np.arange(1, len(differences) + 1)))
    beyond = int(np.searchsorted(chances, error_rate / 2, side="right"))
    if beyond == 0:
        return -math.inf, math.inf
    return float(means[beyond - 1]), float(means[-beyond])


def shift(differences: Sequence[float]) -> float:
    """Return the centre of the differences, which is in the interval of `shift_interval`."""
    return float(np.median(_means_of_pairs(differences)))


def median_interval(values: Sequence[float], error_rate: float = 0.05) -> tuple[float, float]:
    """Return the interval of the median of the distribution of `values`, with an error rate.

    It is bounded by ordered values, and so free of assumptions. With too few values, it is from the
    smallest to the largest.
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
    """Return the means of all pairs, including each value with itself."""
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
    """Return the probability of each sum from 0 if a fair coin adds each rank or not."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        added = np.zeros_like(chances)
        added[rank:] = chances[: len(chances) - rank]
        chances = (chances + added) / 2
    return chances
