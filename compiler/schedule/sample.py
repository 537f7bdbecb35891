"""Sampling: the choices of a schedule, drawn uniformly and without listing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random


def num_tiles(extent: int, n: int, max_innermost_factor: int) -> int:
    """Return in how many ways `extent` is a product of `n` factors, the last of them bounded."""
    lasts = _last_factors(extent, n, max_innermost_factor)
    return sum(_num_products(extent // last, n - 1) for last in lasts)


def sample_tile(rng: Random, extent: int, n: int, max_innermost_factor: int) -> tuple[int, ...]:
    """Draw `n` factors whose product is `extent`, each way as likely as any other."""
    lasts = _last_factors(extent, n, max_innermost_factor)
    factors: list[int] = []
    rest = extent
    for left in range(n - 1, -1, -1):
        choices = lasts if not factors else divisors(rest)
        weights = [_num_products(rest // choice, left) for choice in choices]
        factor = rng.choices(choices, weights)[0]
        factors.append(factor)
        rest //= factor
    return tuple(reversed(factors))


def sample_index(rng: Random, probs: Sequence[float]) -> int:
    """Draw an index with the given probabilities."""
    return rng.choices(range(len(probs)), probs)[0]


@lru_cache(maxsize=4096)
def divisors(extent: int) -> tuple[int, ...]:
    """Return the divisors of a positive integer, the least first."""
    small = [d for d in range(1, math.isqrt(extent) + 1) if extent % d == 0]
    large = [extent // d for d in reversed(small) if d * d != extent]
    return (*small, *large)


def _last_factors(extent: int, n: int, most: int) -> tuple[int, ...]:
    """Return what the last of `n` factors may be; a single factor has no choice."""
    return (extent,) if n == 1 else tuple(d for d in divisors(extent) if d <= most)


@lru_cache(maxsize=65536)
def _num_products(extent: int, n: int) -> int:
    """Return in how many ways `extent` is a product of `n` factors."""
    if n == 0:
        return int(extent == 1)
    ways = 1
    for exponent in _exponents(extent):
        ways *= math.comb(exponent + n - 1, n - 1)
    return ways


@lru_cache(maxsize=65536)
def _exponents(extent: int) -> tuple[int, ...]:
    """Return the exponents of the prime factorisation of a positive integer."""
    found: list[int] = []
    prime = 2
    while prime * prime <= extent:
        exponent = 0
        while extent % prime == 0:
            extent //= prime
            exponent += 1
        if exponent:
            found.append(exponent)
        prime += 1
    return (*found, 1) if extent > 1 else tuple(found)
