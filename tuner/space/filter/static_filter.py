"""The static filter: drop hopeless candidates before anything is compiled."""

from __future__ import annotations

import math
from functools import lru_cache
from math import prod

import numpy as np

from compiler.schedule.primitives.sampling.sample import divisors
from compiler.target.cpu import CpuTarget
from tuner.space.analysis.busy_cores import MIN_SHARED_POINTS, are_busy
from tuner.space.features.issue_slots import issue_slots
from tuner.space.search_space import Mask
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import NUM_LEVELS, REGISTER_LEVEL, Floats, NestTables, TiledNest
from tuner.space.tables.register_tile import RegisterTile
from tuner.space.tables.sketch import Sketch

MAX_UNROLLED_BODY = 256
"""Limit of the arithmetic operations in the unrolled innermost code: longer code compiles slowly,
and fills the instruction caches. Chosen.
"""
MAX_SHARED = 1.25
"""Limit of the registers of a step with those that unrolled steps of a window share, as a multiple
of the vector registers. On a Zen 4, candidates at 1.2 did not spill; at 1.5 (a window of 7 x 7 in
steps of two) they took 1.3 times, and at 2.2 twice the time of those that share nothing.
"""
MAX_VECTOR_BYTES = 1024
"""Limit of the vectorized loop's extent: sixteen vectors of 64 bytes. Longer ones spill. Chosen."""
MIN_ACCUMULATORS = 4
"""Two units with a latency of four cycles need eight independent sums; with fewer than four, they
wait most of the time. Chosen.
"""
MAX_PADDED = 1.15
"""Limit of the padded points of panels, as a multiple of the fewest possible: equal blocks against
wasted work. Chosen.
"""
MAX_BLOCK = 0.75
"""Limit of the packed rows that each panel of columns reads again, as a share of the second-level
cache; the rest is for the other operand. Chosen.
"""
MIN_STEPS = 512
"""Steps of the sum between a load and a store of a packed product's tile: with fewer, the traffic
of the tile shows. Chosen.
"""
MIN_EFFICIENCY = 0.5
"""Limit of the share of busy lanes, relative to the best that the extents allow. Chosen."""
MAX_SLOTS = 1.12
"""Limit of the instructions a multiply-add of packed operands, as a multiple of the fewest in the
sketch: `tuner/space/features/issue_slots.py` has the measured effect. Chosen.
"""
NUM_COMPARED = 8192
"""Sampled decisions of a sketch in which the fewest instructions and the least padding are found:
more cost time for each batch. Chosen.
"""

TILE_LEVEL = 3
"""The level of the loops whose output is accumulated across the outer loop of a reduction."""
PACKED = frozenset({"packed", "packed_right"})
"""The tags of sketches whose operands are packed in the order of use."""


def passes(sketch: Sketch, choices: Ints, target: CpuTarget) -> Mask:
    """Return which candidates are worth compiling.

    A candidate is dropped if the register tile of a block spills, its unrolled code is too long,
    its vectors are too long or mostly empty, its local tile exceeds the second-level cache, its
    heaviest block leaves cores idle, or packed operands need more padding or instructions than
    necessary.
    """
    values = sketch.values(choices)
    alive = _sound(sketch, values, target)
    alive = alive[_wastes_little(sketch, values[alive], target)]
    mask = np.zeros(len(choices), np.bool_)
    mask[alive] = True
    return mask


def is_compilable(sketch: Sketch, choices: Ints, target: CpuTarget) -> Mask:
    """Return which candidates have code of acceptable length, good or not."""
    values = sketch.values(choices)
    short = np.ones(len(choices), np.bool_)
    for nest in sketch.nests:
        tables = nest.tables(values)
        short &= _is_short(tables, RegisterTile(tables, target))
    return short


def _sound(sketch: Sketch, values: Ints, target: CpuTarget) -> Ints:
    """Return which rows of a table pass the checks that consider one row only."""
    alive = np.arange(len(values))
    # The cheap test first: most candidates fail it.
    for test in (_has_good_register_tile, _fits_caches, _pads_little):
        for nest in sketch.nests:
            alive = alive[test(nest.tables(values[alive]), target)]
    if sketch.nests:
        alive = alive[_uses_cores(sketch.nests[0].tables(values[alive]), target)]
    return alive


def _has_good_register_tile(tables: NestTables, target: CpuTarget) -> Mask:
    tile = RegisterTile(tables, target)
    return _fits_registers(tables, tile, target) & _uses_lanes(tables.nest, tile, target)


def _fits_registers(tables: NestTables, tile: RegisterTile, target: CpuTarget) -> Mask:
    fits = _is_short(tables, tile)
    if tables.nest.facts.is_reduction:
        registers = target.num_vector_registers
        fits &= tile.registers <= registers
        fits &= tile.registers + tile.shared_loads <= MAX_SHARED * registers
    if tables.nest.packed:
        fits &= tile.accumulators >= min(MIN_ACCUMULATORS, _most_accumulators(tables.nest, tile))
    return fits


def _most_accumulators(nest: TiledNest, tile: RegisterTile) -> int:
    """Return the vectors of the whole output: a product of 3 x 5 has no tile of 4."""
    lengths = [
        -(-axis.extent // tile.lanes) if number == nest.vector_axis else axis.extent
        for number, axis in enumerate(nest.facts.axes)
        if not axis.is_reduction and any(column is not None for column in nest.columns[number])
    ]
    return math.prod(lengths)


def _is_short(tables: NestTables, tile: RegisterTile) -> Mask:
    short: Mask = (tile.unrolled_body <= MAX_UNROLLED_BODY) & (
        tables.vector_length * tables.nest.facts.write.item_bytes <= MAX_VECTOR_BYTES
    )
    return short


def _uses_lanes(nest: TiledNest, tile: RegisterTile, target: CpuTarget) -> Mask:
    if nest.vector_axis is None:
        return np.ones(len(tile.rows), np.bool_)
    longest = MAX_VECTOR_BYTES // nest.facts.write.item_bytes
    # A row whose accumulators and operands spill is not a fair comparison.
    most = (target.num_vector_registers - 1) // 2 if nest.facts.is_reduction else longest
    extent = nest.facts.axes[nest.vector_axis].extent
    best = _best_efficiency(extent, tile.lanes, longest, most)
    fair: Mask = tile.efficiency >= MIN_EFFICIENCY * best
    return fair


def _wastes_little(sketch: Sketch, values: Ints, target: CpuTarget) -> Mask:
    """Keep the packed candidates near the best of their sketch, so that some are always left."""
    if not sketch.tags & PACKED:
        return np.ones(len(values), np.bool_)
    padding, slots = _waste(sketch, values, target)
    least_padding, fewest_slots = _least_waste(sketch, target)
    little: Mask = (padding <= MAX_PADDED * least_padding) & (slots <= MAX_SLOTS * fewest_slots)
    return little


def _waste(sketch: Sketch, values: Ints, target: CpuTarget) -> tuple[Floats, Floats]:
    """Return the padding of blocks and the instructions a multiply-add, of each row of a table."""
    padding = np.ones(len(values))
    for nest in sketch.nests:
        if nest.packed:
            padding = np.maximum(padding, _padding(nest.tables(values)))
    heaviest = sketch.nests[0]
    if not heaviest.facts.is_multiply_add:
        return padding, np.ones(len(values))
    tables = heaviest.tables(values)
    return padding, issue_slots(tables, RegisterTile(tables, target))


@lru_cache(maxsize=256)
def _least_waste(sketch: Sketch, target: CpuTarget) -> tuple[float, float]:
    """Return the separate minima of both among a sketch's sound candidates.

    A large sketch is represented by a sample, so that the result depends on the sketch alone.
    """
    values = sketch.values(sketch.draw(NUM_COMPARED, np.random.default_rng(0)))
    padding, slots = _waste(sketch, values[_sound(sketch, values, target)], target)
    least_padding = float(padding.min(initial=np.inf))
    # Only among rows without too much padding: few instructions do not make up for it.
    full = slots[padding <= MAX_PADDED * least_padding]
    return least_padding, float(full.min(initial=np.inf))


def _padding(tables: NestTables) -> Floats:
    """Return the number of points of blocks, as a multiple of those of the required tiles.

    Blocks are equal, so the last one may reach beyond the end; the padding of panels is multiplied,
    too.
    """
    tiles = tables.extents[REGISTER_LEVEL]
    axes = np.array([[axis.extent] for axis in tables.nest.facts.axes])
    needed = np.prod(np.ceil(axes / tiles) * tiles, axis=0)
    padding: Floats = tables.trips[NUM_LEVELS] / needed
    return padding


@lru_cache(maxsize=256)
def _best_efficiency(extent: int, lanes: int, longest: int, most: int) -> float:
    """Return the best share of busy lanes among the tiles that divide `extent`.

    Args:
        longest: The most elements of a tile.
        most: The most vectors that it may take.
    """
    tiles = [(t, t // lanes + (t % lanes).bit_count()) for t in divisors(extent) if t <= longest]
    return max(t / (lanes * vectors) for t, vectors in tiles if t == 1 or vectors <= most)


def _uses_cores(tables: NestTables, target: CpuTarget) -> Mask:
    """Keep rows that share a large block's outermost loops evenly; all rows if none does.

    For packed operands the rule ensures it: the shared loops are not always the outermost ones.
    """
    shares = tables.level_extents[0]
    cores = target.num_cores
    facts = tables.nest.facts
    busy: Mask = are_busy(shares, cores)
    if cores == 1 or tables.nest.packed or facts.points < MIN_SHARED_POINTS or not busy.any():
        return np.ones(len(shares), np.bool_)
    return busy


def _fits_caches(tables: NestTables, target: CpuTarget) -> Mask:
    """Keep rows whose output tile, accumulated across the reduction's outer loop, fits the caches.

    If a single row exceeds them, no decision changes that. For packed operands, a panel of each
    must fit.
    """
    if not tables.nest.packed:
        tile: Floats = tables.footprints[0, TILE_LEVEL]
        near: Mask = tile <= max(target.l2_bytes // 2, _least_tile_bytes(tables.nest))
        return near
    panels: Floats = tables.footprints[:, 4].max(axis=0, initial=0)
    small: Mask = panels <= target.l2_bytes // 2
    near = small & (_block_read_again(tables) <= MAX_BLOCK * target.l2_bytes)
    return near & _has_long_steps(tables)


def _pads_little(tables: NestTables, target: CpuTarget) -> Mask:
    """Keep reductions whose blocks of tiles reach little beyond the end of an axis.

    Panels of packed operands are compared with the best of their sketch instead.
    """
    del target
    if tables.nest.packed or not tables.nest.facts.is_reduction:
        return np.ones(len(tables.level_extents[0]), np.bool_)
    little: Mask = _padding(tables) <= MAX_PADDED
    return little


def _least_tile_bytes(nest: TiledNest) -> int:
    """Return the bytes of the output along the axes that no decision cuts, such as a whole row."""
    whole = [
        axis.extent
        for index, axis in enumerate(nest.facts.axes)
        if (nest.remainder_levels[index] or 0) >= TILE_LEVEL
        and all(column is None for column in nest.columns[index])
        and nest.facts.write.strides[index]
    ]
    return prod(whole) * nest.facts.write.item_bytes


def _block_read_again(tables: NestTables) -> Floats:
    """Return the bytes of the packed rows that each panel of columns reads again.

    Beyond the second-level cache this is fast only if no other process uses the third level.
    """
    nest = tables.nest
    vector = nest.vector_axis
    rows = [i for i in sorted(nest.packed) if not nest.accesses[i].strides[vector]]  # type: ignore[index]
    block: Floats = tables.footprints[rows, 3].sum(axis=0)
    return block


def _has_long_steps(tables: NestTables) -> Mask:
    """Return whether each visit of an output tile is worth its loads and stores."""
    steps = tables.level_extents[4] * tables.level_extents[5]
    enough: Mask = steps >= np.minimum(MIN_STEPS, steps * tables.level_extents[2])
    return enough
