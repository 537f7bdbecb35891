"""How many instructions a multiply-add costs, loads and loops included.

A core starts far more of them in a cycle than multiply-adds, so it does not matter as long as the
core is one's own. Where another thread runs on the same core (on virtual machines nobody says so),
each gets half of the starts: on Zen 3 about 2.5 in a cycle, and the same kernel ran at 100 and at
88 GFLOP/s with 1.7 instructions a multiply-add, at 100 and at 70 with 2.3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.target import Target
from tuner.space.nest import NUM_LEVELS, REGISTER_LEVEL, UNROLLED_LEVEL, Floats, Nest, NestTables
from tuner.space.register_tile import RegisterTile
from tuner.space.sketch import Sketch

LOOP_SLOTS = 5.0
"""What an iteration of the innermost loop costs beside its body: counting, and the jump."""
PANEL_SLOTS = 2.0
"""What a vector of a panel costs that is read again: more rows of a tile share it."""
SHARED_SLOTS = 3.0
"""Instructions that start in a cycle, where another thread has its share."""
MAX_TILES = 4096
"""Register tiles that are compared to find the least; of more, a sample."""

Fits: TypeAlias = Callable[[NestTables, RegisterTile, Target], npt.NDArray[np.bool_]]
_Options: TypeAlias = tuple[tuple[int, ...], ...]


def issue_slots(tables: NestTables, tile: RegisterTile) -> Floats:
    """Return the instructions a vector multiply-add; what works on padding is waste."""
    slots: Floats = _slots_of(tables, tile) * tables.trips[NUM_LEVELS] / tables.nest.facts.points
    return slots


def _slots_of(tables: NestTables, tile: RegisterTile) -> Floats:
    unrolled = tables.level_extents[UNROLLED_LEVEL]
    loads = tile.loads
    if tables.nest.packed:
        # Each row of tiles reads a panel's vectors again, from the second-level cache.
        loads = loads + (PANEL_SLOTS - 1) * tile.vectors
    body = (tile.accumulators + loads) * unrolled + LOOP_SLOTS
    slots: Floats = body / (tile.accumulators * unrolled * tile.efficiency)
    return slots


def _padding(tables: NestTables) -> Floats:
    """Return how many points whole tiles have, as a multiple of those that are needed."""
    sizes = tables.extents[REGISTER_LEVEL]
    axes = np.array([[axis.extent] for axis in tables.nest.facts.axes])
    share: Floats = np.prod(np.ceil(axes / sizes) * sizes / axes, axis=0)
    return share


def least_slots(sketch: Sketch, nest: Nest, target: Target, fits: Fits) -> float:
    """Return the fewest instructions a multiply-add that a register tile of a sketch needs.

    Args:
        fits: Which tiles may be chosen.
    """
    inner = {c for own in nest.columns for c in own[UNROLLED_LEVEL:] if c is not None}
    every = [column for knob in sketch.knobs for column in knob.options.T]
    # Of the columns that do not matter here, one number each.
    options = tuple(
        tuple(np.unique(column).tolist()) if index in inner else (int(column[0]),)
        for index, column in enumerate(every)
    )
    return _least(nest, options, target, fits)


@lru_cache(maxsize=256)
def _least(nest: Nest, options: _Options, target: Target, fits: Fits) -> float:
    """Compare the tiles that the options of the columns make, each with each."""
    sizes = [len(numbers) for numbers in options]
    count = prod(sizes)
    picked = np.arange(count)
    if count > MAX_TILES:
        picked = np.random.default_rng(0).integers(count, size=MAX_TILES)
    places = np.unravel_index(picked, sizes)
    values = np.stack(
        [np.array(own, np.int64)[place] for own, place in zip(options, places, strict=True)], axis=1
    )
    tables = nest.tables(values)
    tile = RegisterTile(tables, target)
    found = (_slots_of(tables, tile) * _padding(tables))[fits(tables, tile, target)]
    return float(found.min(initial=np.inf))
