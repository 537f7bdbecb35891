"""The innermost code: vectors, registers, unrolled loops, code size."""

from __future__ import annotations

import numpy as np

from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.tables.nest import REGISTER_LEVEL, UNROLLED_LEVEL, Floats, NestTables
from tuner.space.tables.register_tile import RegisterTile

TILE_NAMES = (
    "has_vectors",
    "sums_in_lanes",
    "vector_length",
    "vector_efficiency",
    "rows",
    "vectors_per_row",
    "accumulators",
    "register_use",
    "spilled",
    "flops_per_load",
    "unrolled_steps",
    "unrolled_body",
    "inner_trip",
    "innermost_trip",
    "code.arithmetic",
    "code.loads",
    "code.all",
)


def tile_columns(batch: CpuBatch) -> Floats:
    """Lengths and counts as logarithms, shares unchanged.

    `register_use` is the share of the vector registers that a step needs, `spilled` the excess, and
    `code` the number of instructions of the unrolled body, or of those of all nests.
    """
    main, tile = batch.main, batch.tile
    ones = np.ones(len(batch))
    vector = main.nest.vector_axis
    axes = main.nest.facts.axes
    steps = main.level_extents[UNROLLED_LEVEL]
    use = tile.registers / batch.target.num_vector_registers
    return np.stack(
        [
            ones * (vector is not None),
            ones * (vector is not None and axes[vector].is_reduction),
            np.log2(main.vector_length),
            tile.efficiency,
            np.log2(tile.rows),
            tile.vectors,
            np.log2(tile.accumulators),
            use,
            np.maximum(use - 1, 0),
            np.log2(tile.accumulators / tile.loads),
            np.log2(steps),
            np.log2(tile.unrolled_body),
            np.log2(main.level_extents[4]),
            np.log2(_innermost_trip(main)),
            np.log2(_arithmetic(main, tile)),
            np.log2(tile.loads * steps),
            np.log2(_all_code(batch)),
        ]
    )


def _innermost_trip(main: NestTables) -> Floats:
    """Return the number of iterations of the innermost loop that is not unrolled."""
    summed = [i for i, axis in enumerate(main.nest.facts.axes) if axis.is_reduction]
    trip: Floats = main.extents[4, summed[-1]] if summed else np.ones_like(main.trips[0])
    return trip


def _arithmetic(tables: NestTables, tile: RegisterTile) -> Floats:
    count: Floats = tile.unrolled_body * max(tables.nest.facts.operations.total, 1)
    return count


def _all_code(batch: CpuBatch) -> Floats:
    total = np.zeros(len(batch))
    for tables in batch.tables:
        tile = RegisterTile(tables, batch.target)
        steps = tables.level_extents[UNROLLED_LEVEL]
        total += _arithmetic(tables, tile) + tile.loads * steps
    return total


OTHER_NAMES = tuple(
    f"next.{name}" for name in ("points", "vector_length", "rows", "body", "tile_bytes", "cycles")
)


def other_columns(batch: CpuBatch) -> Floats:
    """Return a few columns of the second nest, per point of the first; zeros without one."""
    if len(batch.tables) < 2:
        return np.zeros((len(OTHER_NAMES), len(batch)))
    tables, tile = batch.tables[1], RegisterTile(batch.tables[1], batch.target)
    share = np.full(len(batch), tables.nest.facts.points / batch.points)
    touched = tables.footprints[:, REGISTER_LEVEL].sum(axis=0)
    cycles = batch.cycles(1)
    columns = [share, tables.vector_length, tile.rows, tile.unrolled_body, touched, cycles]
    logarithms: Floats = np.log2(np.stack(columns))
    return logarithms
