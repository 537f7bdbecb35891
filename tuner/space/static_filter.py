"""The static filter: candidates that can't be good are dropped before anything is compiled."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from compiler.schedule.sample import divisors
from compiler.target import Target
from tuner.space.issue_slots import issue_slots, least_slots
from tuner.space.knob import Ints
from tuner.space.nest import NUM_LEVELS, REGISTER_LEVEL, Floats, Nest, NestTables
from tuner.space.register_tile import RegisterTile
from tuner.space.sketch import Sketch

MAX_UNROLLED_BODY = 256
MAX_VECTOR_BYTES = 1024
MIN_ACCUMULATORS = 4
"""Fewer of them wait for each other most of the time."""
MAX_PADDED = 1.15
"""Points that panels are padded to so that blocks are equal, as a multiple of what is needed."""
MAX_BLOCK = 0.75
"""Of the second-level cache: the packed rows that each panel of columns reads again."""
MIN_STEPS = 512
"""Of the sum between a load and a store of a packed product's tile."""
MIN_EFFICIENCY = 0.5
"""Of the best share of busy lanes that the extents allow."""
MAX_SLOTS = 1.12
"""Instructions a multiply-add of packed operands, as a multiple of the fewest there are."""
MIN_BUSY_CORES = 0.75
"""Of the time that all cores have, while a parallel loop runs."""
MIN_SHARED_POINTS = 1 << 15
"""Blocks with fewer points may be better off on one core."""

FMA_FLOPS = 2
PACKED = frozenset({"packed", "packed_right"})
"""What sketches are tagged with whose operands lie in the order of use."""

Mask = npt.NDArray[np.bool_]


def passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    """Tell which candidates are worth compiling.

    A candidate is dropped if the register tile of a block spills, its unrolled code is too long,
    its vectors are too long or mostly empty, its local tile outgrows the second-level cache, or its
    heaviest block leaves cores idle or, of packed operands, wants more instructions than it must.
    """
    values = sketch.values(choices)
    alive = np.arange(len(choices))
    # The cheap test first: most candidates fall by it.
    for test in (_has_good_register_tile, _fits_caches):
        for nest in sketch.nests:
            alive = alive[test(nest.tables(values[alive]), target)]
    if sketch.nests:
        alive = alive[_uses_cores(sketch.nests[0].tables(values[alive]), target)]
        alive = alive[_has_few_instructions(sketch, values[alive], target)]
    kept = np.zeros(len(choices), np.bool_)
    kept[alive] = True
    return kept


def _has_good_register_tile(tables: NestTables, target: Target) -> Mask:
    return _is_good(tables, RegisterTile(tables, target), target)


def _is_good(tables: NestTables, tile: RegisterTile, target: Target) -> Mask:
    return _fits_registers(tables, tile, target) & _uses_lanes(tables.nest, tile, target)


def _fits_registers(tables: NestTables, tile: RegisterTile, target: Target) -> Mask:
    fits: Mask = (tile.unrolled_body <= MAX_UNROLLED_BODY) & (
        tables.vector_length * tables.nest.facts.write.item_bytes <= MAX_VECTOR_BYTES
    )
    if tables.nest.facts.is_reduction:
        fits &= tile.registers <= target.num_vector_registers
    if tables.nest.packed:
        fits &= tile.accumulators >= MIN_ACCUMULATORS
    return fits


def _uses_lanes(nest: Nest, tile: RegisterTile, target: Target) -> Mask:
    if nest.vector_axis is None:
        return np.ones(len(tile.rows), np.bool_)
    longest = MAX_VECTOR_BYTES // nest.facts.write.item_bytes
    # A row whose accumulators and operands spill is no choice to compare with.
    most = (target.num_vector_registers - 1) // 2 if nest.facts.is_reduction else longest
    extent = nest.facts.axes[nest.vector_axis].extent
    best = _best_efficiency(extent, tile.lanes, longest, most)
    fair: Mask = tile.efficiency >= MIN_EFFICIENCY * best
    return fair


def _has_few_instructions(sketch: Sketch, values: Ints, target: Target) -> Mask:
    nest = sketch.nests[0]
    if nest.facts.flops_per_point != FMA_FLOPS or not sketch.tags & PACKED:
        return np.ones(len(values), np.bool_)
    tables = nest.tables(values)
    least = least_slots(sketch, nest, target, _is_good)
    few: Mask = issue_slots(tables, RegisterTile(tables, target)) <= MAX_SLOTS * least
    return few


@lru_cache(maxsize=256)
def _best_efficiency(extent: int, lanes: int, longest: int, most: int) -> float:
    """Return the best share of busy lanes among the tiles that divide `extent`.

    Args:
        longest: The most elements of a tile.
        most: The most vectors that it may take.
    """
    tiles = [(t, t // lanes + (t % lanes).bit_count()) for t in divisors(extent) if t <= longest]
    return max(t / (lanes * vectors) for t, vectors in tiles if t == 1 or vectors <= most)


def _uses_cores(tables: NestTables, target: Target) -> Mask:
    """Keep what shares a large block's outermost loops evenly; all, if none does.

    Of packed operands the rule sees to it: not always are those the outermost loops.
    """
    shares = tables.level_extents[0]
    cores = target.num_cores
    facts = tables.nest.facts
    busy: Mask = shares >= MIN_BUSY_CORES * cores * np.ceil(shares / cores)
    if cores == 1 or tables.nest.packed or facts.points < MIN_SHARED_POINTS or not busy.any():
        return np.ones(len(shares), np.bool_)
    return busy


def _fits_caches(tables: NestTables, target: Target) -> Mask:
    """Keep the output tile that is accumulated across the reduction's outer loop near.

    Of packed operands, a panel of each shall stay near.
    """
    if not tables.nest.packed:
        tile: Floats = tables.footprints[0, 3]
        near: Mask = tile <= target.l2_bytes // 2
        return near
    panels: Floats = tables.footprints[:, 4].max(axis=0, initial=0)
    small: Mask = panels <= target.l2_bytes // 2
    near = small & (_block_read_again(tables) <= MAX_BLOCK * target.l2_bytes)
    return near & _has_long_steps(tables) & _has_full_blocks(tables)


def _block_read_again(tables: NestTables) -> Floats:
    """Return the bytes of the packed rows that each panel of columns reads again.

    Beyond the second-level cache that goes well as long as nobody else uses the third.
    """
    nest = tables.nest
    vector = nest.vector_axis
    rows = [i for i in sorted(nest.packed) if not nest.accesses[i].strides[vector]]  # type: ignore[index]
    block: Floats = tables.footprints[rows, 3].sum(axis=0)
    return block


def _has_full_blocks(tables: NestTables) -> Mask:
    """Tell whether no block is mostly beyond the end: what pads panels is multiplied, too."""
    tiles = tables.extents[REGISTER_LEVEL]
    axes = np.array([[axis.extent] for axis in tables.nest.facts.axes])
    needed = np.prod(np.ceil(axes / tiles) * tiles, axis=0)
    full: Mask = tables.trips[NUM_LEVELS] <= MAX_PADDED * needed
    return full


def _has_long_steps(tables: NestTables) -> Mask:
    """Tell whether each visit of an output tile is worth its loads and stores."""
    steps = tables.level_extents[4] * tables.level_extents[5]
    enough: Mask = steps >= np.minimum(MIN_STEPS, steps * tables.level_extents[2])
    return enough
