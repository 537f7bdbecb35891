"""Whether the parts of a parallel loop keep all cores busy."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.schedule.primitives.sampling.sample import divisors

MIN_BUSY_CORES = 0.75
"""Share of the time of all cores that a parallel loop keeps busy, at least. Chosen: three of four
cores.
"""
MIN_SHARED_POINTS = 1 << 15
"""Blocks with fewer points may be faster on one core: a launch of threads costs microseconds.
Chosen.
"""


def are_busy(parts: Any, cores: int) -> Any:
    """Return whether a loop of so many equal parts keeps the cores busy, a number or an array."""
    return parts >= MIN_BUSY_CORES * cores * np.ceil(parts / cores)


def idle_counts(extent: int, cores: int, least: int, most: int) -> list[int]:
    """Return the numbers of equal parts of an axis that leave cores idle.

    None are idle if no other number leaves parts that can be cut into tiles.

    Args:
        extent: The extent of the axis.
        cores: The cores that share the parts.
        least: The least size of a tile.
        most: Its greatest size.
    """
    counts = divisors(extent)
    busy = [n for n in counts if are_busy(n, cores)]
    is_enough = any(least <= size <= most for n in busy for size in divisors(extent // n))
    return [n for n in counts if n not in busy] if is_enough else []
