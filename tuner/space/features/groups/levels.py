"""The loops of the main nest: levels, the axes in them, and the parallel parts."""

from __future__ import annotations

import numpy as np

from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.nest import NUM_LEVELS, SPATIAL_LEVELS, Floats

NUM_SPATIAL, NUM_SUMMED = 4, 3
"""Axes of each kind with separate columns."""
_SPATIAL_LEVELS = SPATIAL_LEVELS
_SUMMED_LEVELS = (0, 2, 4, 5, 6)
_LEVEL = ("extent", "trips", "bytes", "intensity", "traffic")

LEVEL_NAMES = tuple(f"level{level}.{name}" for name in _LEVEL for level in range(NUM_LEVELS))
AXIS_NAMES = (
    *(f"spatial{i}.{n}" for i in range(NUM_SPATIAL) for n in ("extent", *_SPATIAL_LEVELS)),
    *(f"summed{i}.{n}" for i in range(NUM_SUMMED) for n in ("extent", *_SUMMED_LEVELS)),
)
PARALLEL_NAMES = (
    "parallel.extent",
    "parallel.balance",
    "parallel.points",
    "parallel.launches",
)


def level_columns(batch: CandidateBatch) -> Floats:
    """Return columns of each level, as logarithms.

    They are its `extent`, the number of its runs, the bytes of the lines that one run touches, the
    points of one run for each of these, and the bytes moved for each point if one run's data is
    cached.
    """
    main = batch.main
    trips = main.trips[:NUM_LEVELS]
    work = main.trips[NUM_LEVELS] / trips
    columns = [main.level_extents, trips, batch.bytes, work / batch.bytes]
    columns.append(batch.traffic / main.trips[NUM_LEVELS])
    logarithms: Floats = np.log2(np.concatenate(columns))
    return logarithms


def axis_columns(batch: CandidateBatch) -> Floats:
    """Return the extents of the axes in all and at each level, as logarithms.

    Spatial axes are in the order of the output's memory, those summed over in that of the loops,
    the innermost first; those of one element are left out.
    """
    main = batch.main
    columns = np.ones((len(AXIS_NAMES), len(batch)))
    row = 0
    spatial, summed = _axes(main.nest.facts)
    for axes, count, levels in (
        (spatial, NUM_SPATIAL, _SPATIAL_LEVELS),
        (summed, NUM_SUMMED, _SUMMED_LEVELS),
    ):
        width = 1 + len(levels)
        for position, axis in enumerate(axes[:count]):
            column = row + position * width
            columns[column] = main.nest.facts.axes[axis].extent
            columns[column + 1 : column + width] = main.extents[list(levels), axis]
        row += count * width
    logarithms: Floats = np.log2(columns)
    return logarithms


def _axes(facts: BlockFacts) -> tuple[list[int], list[int]]:
    """Return the axes of several elements: spatial ones, and those that are summed over."""
    long = [i for i, axis in enumerate(facts.axes) if axis.extent > 1]
    spatial = [i for i in long if not facts.axes[i].is_reduction]
    spatial.sort(key=lambda i: (abs(facts.write.strides[i]), -i))
    return spatial, [i for i in reversed(long) if facts.axes[i].is_reduction]


def parallel_columns(batch: CandidateBatch) -> Floats:
    """Return the parallel parts, their balance, the points of one, and the launches a point.

    A launch is one start of a parallel loop; every nest has one if there are several cores.
    """
    outer = batch.main.level_extents[SPATIAL_LEVELS[0]]
    cores = batch.num_cores
    rounds = np.ceil(outer / cores)
    launches = len(batch.tables) * (cores > 1)
    points = batch.main.trips[NUM_LEVELS]
    return np.stack(
        [
            np.log2(outer),
            outer / (rounds * cores),
            np.log2(points / outer),
            np.log2((1 + launches) / points),
        ]
    )
