"""Sizes of tiles that need not divide an extent, because the last tile is padded."""

from __future__ import annotations

from collections.abc import Iterable

MAX_WASTE = 1.15
"""Limit of the padded points, as a multiple of the extent: see
`tuner.space.filter.static_filter.MAX_PADDED`.
"""


def padded_sizes(extent: int, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the sizes, in their order, whose tiles pad little; at least those that pad least."""
    wastes = {size: -(-extent // size) * size / extent for size in sizes}
    most = max(MAX_WASTE, min(wastes.values()))
    return tuple(size for size, waste in wastes.items() if waste <= most)
