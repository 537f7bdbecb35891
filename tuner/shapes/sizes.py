"""Sizes of a symbolic program to tune and to time at, spread over its ranges."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import TypeAlias

from compiler.ir.analysis.symbols import symbol_ranges
from compiler.ir.core.program import PrimFunc

Sizes: TypeAlias = Mapping[str, int]
"""The value of each symbolic extent, by its name."""

_BASES = (2, 3, 5, 7, 11, 13, 17, 19)
_NEAR = 1.2
"""The ratio of a size to one with more divisors that is tuned instead of it: a small part of the
step to the next one. Chosen.
"""
_MAX_DRAWS = 64
"""Draws for each size that is wanted, some of which repeat others. Chosen."""


def ranges_of(func: PrimFunc) -> dict[str, tuple[int, int]]:
    """Return the range of each symbolic variable of a program by its name."""
    return {var.name: interval for var, interval in symbol_ranges(func).items()}


def spread_sizes(ranges: Mapping[str, tuple[int, int]], number: int) -> list[Sizes]:
    """Return at most so many different sizes, evenly spread by their logarithms.

    The least and the greatest are among them. A change from 4 to 8 rows matters as much as one
    from 256 to 512: both double the work.
    """
    if len(ranges) == 1:
        ((name, (low, high)),) = ranges.items()
        return [{name: value} for value in _spread(low, high, number)]
    corners = [tuple(end[side] for end in ranges.values()) for side in (0, 1)]
    points = islice(_points(list(ranges.values())), _MAX_DRAWS * number)
    values = list(dict.fromkeys([*corners, *points]))[: max(number, 1)]
    return [dict(zip(ranges, point, strict=True)) for point in sorted(values)]


def _spread(low: int, high: int, number: int) -> list[int]:
    """Return integers that form a geometric series, rounded; there are fewer small ones."""
    values: list[int] = []
    for steps in range(max(number, 2), _MAX_DRAWS * max(number, 2)):
        ratio = (high / low) ** (1 / (steps - 1))
        series = sorted({min(round(low * ratio**step), high) for step in range(steps)})
        if len(series) > number:
            break
        values = series
        if len(values) in (number, high - low + 1):
            break
    return values[:number]


def _points(intervals: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yield points of a Halton sequence between the ends, in logarithms."""
    for number in count(1):
        yield tuple(
            min(max(round(low * (high / low) ** _fraction(number, base)), low), high)
            for (low, high), base in zip(intervals, _BASES, strict=False)
        )


def _fraction(number: int, base: int) -> float:
    """Return the digits of a number mirrored behind the point (van der Corput)."""
    fraction, unit = 0.0, 1.0
    while number:
        number, digit = divmod(number, base)
        unit /= base
        fraction += digit * unit
    return fraction


def with_divisors(sizes: Sequence[Sizes]) -> list[Sizes]:
    """Return sizes with many divisors near others, which are in ascending order; the ends stay.

    Tiles divide the size that is tuned: of 35 rows only 5 and 7, of 36 also 2, 3, 4, 6, 9 and 12.
    """
    if len(sizes) < 3:
        return list(sizes)
    first, *between, last = sizes
    near = [{name: _divisible(value) for name, value in of_size.items()} for of_size in between]
    inside = [
        of_size
        for of_size in near
        if all(first[name] <= value <= last[name] for name, value in of_size.items())
    ]
    by_values = {tuple(of_size.values()): of_size for of_size in (first, *inside, last)}
    return [by_values[values] for values in sorted(by_values)]


def _divisible(value: int) -> int:
    """Return the number near another that has the most divisors; the nearest of several."""
    low, high = math.ceil(value / _NEAR), math.floor(value * _NEAR)
    return max(
        range(low, high + 1),
        key=lambda n: (sum(n % d == 0 for d in range(1, n + 1)), -abs(math.log(n / value))),
    )


def ends_first(sizes: Sequence[Sizes]) -> list[Sizes]:
    """Return sizes in an order whose beginnings are spread: the last, the first, a middle one, ...

    Args:
        sizes: The sizes in ascending order.
    """
    if not sizes:
        return []
    last = len(sizes) - 1
    order = dict.fromkeys((last, 0))
    intervals = deque([(0, last)])
    while intervals:
        low, high = intervals.popleft()
        if high - low > 1:
            between = (low + high) // 2
            order.setdefault(between)
            intervals += [(low, between), (between, high)]
    return [sizes[position] for position in order]


def middle(low: int, high: int) -> int:
    """Return the integer in the middle of two, by their logarithms; it is less than `high`."""
    return min(math.isqrt(low * high), high - 1)


def is_one(sizes: Sizes) -> bool:
    """Return whether each symbolic extent is 1, as for a batch of a single row."""
    return all(value == 1 for value in sizes.values())
