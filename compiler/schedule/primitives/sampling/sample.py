"""Sampling: the choices of a schedule, drawn uniformly without enumerating them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random


def num_tiles(extent: int, n: int, max_innermost_factor: int) -> int:
    """Return the number of factorisations of `extent` into `n` factors, the last one bounded."""
    lasts = _last_factors(extent, n, max_innermost_factor)
    return sum(_num_products(extent // last, n - 1) for last in lasts)


def sample_tile(rng: Random, extent: int, n: int, max_innermost_factor: int) -> tuple[int, ...]:
    """Draw `n` factors whose product is `extent`, all factorisations with equal probability.

    Args:
        max_innermost_factor: The limit on the last of several factors; -1 for none.
    """
    return _sample(rng, extent, n, _last_factors(extent, n, max_innermost_factor))


def sample_partitioned(
    rng: Random, extent: int, n: int, position: int, multiple_of: int
) -> tuple[int, ...]:
    """Draw `n` factors whose product is `extent`, all factorisations with equal probability.

    Args:
        position: The number of outer factors.
        multiple_of: A divisor of the product of the inner factors; it divides the extent.
    """
    inner = [d for d in divisors(extent) if d % multiple_of == 0]
    ways = [_num_products(extent // d, position) * _num_products(d, n - position) for d in inner]
    product = rng.choices(inner, ways)[0]
    outer = _sample(rng, extent // product, position, divisors(extent // product))
    return outer + _sample(rng, product, n - position, divisors(product))


def fitted(extent: int, factors: Sequence[int]) -> tuple[int, ...]:
    """Return factors whose product is `extent`, with as many of the given factors as possible.

    From the last on, a factor is kept if it divides the remaining extent, and is otherwise replaced
    by all of it. The first factor takes the rest.
    """
    fit: list[int] = []
    remaining = extent
    for factor in reversed(factors[1:]):
        fit.append(factor if factor > 0 and remaining % factor == 0 else remaining)
        remaining //= fit[-1]
    return (remaining, *reversed(fit))


def fitted_partitioned(
    extent: int, factors: Sequence[int], position: int, multiple_of: int
) -> tuple[int, ...]:
    """Return factors whose product is `extent`, the inner ones a multiple of a number.

    Args:
        position: The number of outer factors.
        multiple_of: A divisor of the product of the inner factors; it divides the extent.
    """
    if math.prod(factors[position:]) % multiple_of == 0:
        # A factor that does not fit becomes the whole rest, so that the product stays a multiple.
        return fitted(extent, factors)
    plain = [1] * len(factors)
    plain[0] = extent // multiple_of
    plain[position] *= multiple_of
    return tuple(plain)


def _sample(rng: Random, extent: int, n: int, lasts: Sequence[int]) -> tuple[int, ...]:
    """Draw `n` factors whose product is `extent`, the last of them one of `lasts`."""
    factors: list[int] = []
    remaining = extent
    for num_left in range(n - 1, -1, -1):
        choices = divisors(remaining) if factors else lasts
        weights = [_num_products(remaining // choice, num_left) for choice in choices]
        factor = rng.choices(choices, weights)[0]
        factors.append(factor)
        remaining //= factor
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
    """Return the possible values of the last of `n` factors; a single factor has no choice."""
    if n == 1:
        return (extent,)
    return divisors(extent) if most == -1 else tuple(d for d in divisors(extent) if d <= most)


@lru_cache(maxsize=65536)
def _num_products(extent: int, n: int) -> int:
    """Return the number of factorisations of `extent` into `n` factors."""
    if n == 0:
        return int(extent == 1)
    ways = 1
    for exponent in _exponents(extent):
        ways *= math.comb(exponent + n - 1, n - 1)
    return ways


@lru_cache(maxsize=65536)
def _exponents(extent: int) -> tuple[int, ...]:
    """Return the exponents of the prime factorisation of a positive integer."""
    exponents: list[int] = []
    prime = 2
    while prime * prime <= extent:
        exponent = 0
        while extent % prime == 0:
            extent //= prime
            exponent += 1
        if exponent:
            exponents.append(exponent)
        prime += 1
    return (*exponents, 1) if extent > 1 else tuple(exponents)
