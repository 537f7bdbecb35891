"""Sizes of tiles that need not divide an extent: the last tile is padded, or has a guard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import ExprRV
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_PART = 4
"""Elements of a part of a vector, at least: xmm registers hold as many floats. Chosen."""
MAX_WASTE = 1.15
"""Limit of the padded points, as a multiple of the extent: see
`tuner.space.filter.static_filter.MAX_PADDED`.
"""
MAX_VECTORS = 4
"""Vectors in a row of a register tile: more leave too few registers for rows. Chosen."""
COUNTS = (1, 2, 4, 8)
"""Options for the tiles in a block of tiles. Chosen."""


def padded_sizes(extent: int, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the sizes, in their order, whose tiles pad little; at least those that pad least."""
    wastes = {size: -(-extent // size) * size / extent for size in sizes}
    most = max(MAX_WASTE, min(wastes.values()))
    return tuple(size for size, waste in wastes.items() if waste <= most)


def vector_sizes(extent: int, lanes: int, most: int = MAX_VECTORS) -> tuple[int, ...]:
    """Return the lengths of tiles of an axis in vectors; the last tile may be padded.

    They are whole vectors, or all of a short axis in vectors whose last one is a half or a quarter:
    a product of 197 rows, 20 columns and 768 steps takes 0.75 of the time of its transpose, the
    best form without such tiles (one core of a Zen 4).

    Args:
        extent: The extent of the axis.
        lanes: The elements of a vector.
        most: The vectors of a tile, at most.
    """
    whole = [n * lanes for n in range(1, most + 1) if (n - 1) * lanes < extent]
    parts = [part for part in (lanes // 2, lanes // 4) if part >= MIN_PART]
    missing = -extent % lanes
    ends = [extent + missing - lanes + part for part in parts if part >= lanes - missing]
    short = ends[-1:] if missing and extent < most * lanes else []
    return padded_sizes(extent, [*short, *whole])


def padded_tiles(
    draft: SketchBuilder, extent: int, sizes: Sequence[int]
) -> tuple[tuple[ExprRV, ExprRV], tuple[int, int]]:
    """Sample the tiles in a block and the size of a tile; return them and their columns.

    Args:
        sizes: Options for the size of a tile; those that pad much are left out.
    """
    sizes = padded_sizes(extent, sizes)
    most = -(-extent // sizes[0])
    count, first = draft.choose([n for n in COUNTS if n <= most])
    size, last = draft.choose(sizes)
    return (count, size), (first, last)


def has_no_tile(extent: int, least: int, most: int, unit: int = 1) -> bool:
    """Return whether no divisor of a long extent is a good tile.

    Args:
        least: The minimum size of a good tile.
        most: Its maximum size; shorter extents are tiles themselves.
        unit: The lanes of a vector, for vectorized axes. A good tile nearly fills its vectors; its
            end is computed in shorter vectors, each half as long.
    """
    tiles = [d for d in divisors(extent) if least <= d <= most]
    vectors = [d // unit + (d % unit).bit_count() for d in tiles]
    pairs = zip(tiles, vectors, strict=True)
    return extent > most and all(count * unit > MAX_WASTE * d for d, count in pairs)
