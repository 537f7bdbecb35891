"""Refit schedules: carry the decisions for one shape over to another shape of the operator.

What is kept are the tiles: how far one run of the loops from a level inwards goes along each axis
of a tiled block. Those of the inner levels (vectors, registers, unrolled steps) weigh most, since
they are bound to the CPU and not to the shape; how often the outermost loops turn follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from tuner.space.design_space import Point, SketchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import NUM_LEVELS, UNROLLED_LEVEL, Floats, TiledNest
from tuner.space.tables.sketch import Sketch

LEVEL_WEIGHTS = (0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0)
"""Weight of a doubling of a tile, by level from the outside in. Register tiles decide most of the
speed, so they are kept longest; the outermost level runs over the whole axis. Chosen, not measured.
"""
KNOB_WEIGHT = 1 / 64
"""Weight of a doubling of a knob's number: it only decides between rows with equal tiles. Chosen.
"""
LOOSE_WEIGHT = 1.0
"""The same, for knobs that are no part of a tile. Chosen."""
MAX_NEAR = 1 << 12
"""Rows near the best one that are tried if the static filter drops that: they take milliseconds.
Chosen.
"""
MAX_SWEEPS = 8
"""Passes over all knobs of the coordinate descent: a bound of its time. Chosen."""

assert len(LEVEL_WEIGHTS) == NUM_LEVELS


class RefitError(ValueError):
    """A schedule that does not fit the other shape; the message says why."""


def refit(
    point: Point, source: SketchSpace, space: SketchSpace, *, keep_whole: bool = False
) -> Point:
    """Return the point of `space` that is nearest to a point of another shape's space.

    Point and result are of sketches of one name. In the space that it is of, a point is nearest to
    itself.

    Args:
        point: A point of `source`.
        space: The space of the same operator in another shape, or for another number of cores.
        keep_whole: Whether tiles outside of registers that hold a whole axis are to hold the whole
            axis again, however long it is now; otherwise they are to be as long as they were.

    Raises:
        RefitError: If `space` has no such sketch, it is built otherwise, or no candidate near the
            point passes the static filter.
    """
    old = source.sketches[point.sketch]
    names = [sketch.name for sketch in space.sketches]
    if old.name not in names:
        raise RefitError(f"the shape has no sketch {old.name!r}, only {', '.join(names) or 'none'}")
    index = names.index(old.name)
    goal = _Goal.make(old, point.choices, space.sketches[index], keep_whole=keep_whole)
    row = _nearest(goal, space, index)
    return Point(index, tuple(row.tolist()))


@dataclass(frozen=True)
class _Goal:
    """What rows of a sketch are to come near to.

    `tiles` has for each nest the source's tiles, by level and axis, cut to the new extents, and
    `values` the numbers of the source's knobs in the columns of the new ones, NaN where unknown.
    """

    sketch: Sketch
    tiles: tuple[Floats, ...]
    values: Floats
    value_weights: Floats

    @classmethod
    def make(
        cls, old: Sketch, choices: tuple[int, ...], sketch: Sketch, *, keep_whole: bool
    ) -> _Goal:
        if not _are_alike(old, sketch):
            raise RefitError(f"sketch {old.name!r} has another structure for this shape")
        numbers = old.values(np.array([choices], np.int64))
        tiles = []
        for nest, new in zip(old.nests, sketch.nests, strict=True):
            tiles.append(_tiles(nest, numbers, new, keep_whole=keep_whole))
        width = sum(knob.options.shape[1] for knob in sketch.knobs)
        values = numbers[0] if numbers.shape[1] == width else np.full(width, np.nan)
        weights = np.full(width, LOOSE_WEIGHT)
        weights[sorted(_tile_columns(sketch.nests))] = KNOB_WEIGHT
        return cls(sketch, tuple(tiles), np.asarray(values, np.float64), weights)

    def distances(self, rows: Ints) -> Floats:
        """Return how far rows are from the goal, in weighted doublings."""
        values = self.sketch.values(rows)
        value_doublings = np.abs(np.log2(np.maximum(values, 0.5) / np.maximum(self.values, 0.5)))
        distances: Floats = np.nan_to_num(value_doublings * self.value_weights).sum(axis=1)
        weights = np.array(LEVEL_WEIGHTS)[:, None]
        for nest, tiles in zip(self.sketch.nests, self.tiles, strict=True):
            doublings = np.abs(np.log2(nest.tables(values).tiles / tiles[:, :, None]))
            distances += (weights * doublings.sum(axis=1)).sum(axis=0)
        return distances

    def start(self) -> Ints:
        """Return the row whose knobs, taken separately, are nearest to the source's."""
        row, column = [], 0
        for knob in self.sketch.knobs:
            width = knob.options.shape[1]
            source_values = np.maximum(self.values[column : column + width], 0.5)
            doublings = np.abs(np.log2(np.maximum(knob.options, 0.5) / source_values))
            row.append(int(np.argmin(np.nan_to_num(doublings).sum(axis=1))))
            column += width
        return np.array(row, np.int64)


def _tiles(old: TiledNest, numbers: Ints, new: TiledNest, *, keep_whole: bool) -> Floats:
    """Return the tiles to come near to, by level and axis."""
    tiles: Floats = old.tables(numbers).tiles[:, :, 0]
    were, are = (np.array([a.extent for a in nest.facts.axes]) for nest in (old, new))
    # Tiles may reach beyond the end of an axis, and are to do so only where they did.
    goal: Floats = np.where(were == are, tiles, np.minimum(tiles, are))
    if keep_whole:
        were_whole = (tiles >= were) & (were != are)
        were_whole[UNROLLED_LEVEL:] = False
        goal = np.where(were_whole, are, goal)
    return goal


def _are_alike(old: Sketch, new: Sketch) -> bool:
    """Return whether the tiles of two sketches can be compared: the same blocks, the same axes."""
    return len(old.nests) == len(new.nests) and all(
        [a.is_reduction for a in old_nest.facts.axes]
        == [a.is_reduction for a in new_nest.facts.axes]
        for old_nest, new_nest in zip(old.nests, new.nests, strict=True)
    )


def _tile_columns(nests: tuple[TiledNest, ...]) -> set[int]:
    return {
        column
        for nest in nests
        for columns in nest.columns
        for column in columns
        if column is not None
    }


def _nearest(goal: _Goal, space: SketchSpace, index: int) -> Ints:
    """Return the nearest row that passes the static filter."""
    sketch = goal.sketch
    if space.is_small(index):
        rows = space.enumerate(index)
    else:
        best = _descend(goal)
        # The filter prefers rows that use all cores among those it is given: the nearest one may
        # pass alone.
        rows = np.vstack([space.keep(index, best[None]), space.keep(index, _near(goal, best))])
        if not len(rows):
            rows = space.draw(index, MAX_NEAR // 8, np.random.default_rng(0))
    if not len(rows):
        raise RefitError(f"no candidate of sketch {sketch.name!r} passes the static filter")
    nearest: Ints = rows[np.argmin(goal.distances(rows))]
    return nearest


def _descend(goal: _Goal) -> Ints:
    """Return a row that no change of one knob brings nearer."""
    row = goal.start()
    for _ in range(MAX_SWEEPS):
        before = row.copy()
        for knob in range(len(row)):
            row[knob] = np.argmin(goal.distances(_changed(goal, row, knob)))
        if (row == before).all():
            break
    return row


def _near(goal: _Goal, row: Ints) -> Ints:
    """Return rows around one: all combinations of the nearest few options of each knob."""
    num_options = int(MAX_NEAR ** (1 / max(len(row), 1)))
    ranked = [
        np.argsort(goal.distances(_changed(goal, row, knob)), kind="stable")
        for knob in range(len(row))
    ]
    counts = _shared_out([len(r) for r in ranked], num_options)
    grid = product(*(r[:n].tolist() for r, n in zip(ranked, counts, strict=True)))
    rows: npt.NDArray[np.int64] = np.array(list(grid), np.int64)
    return rows


def _shared_out(sizes: list[int], even_share: int) -> list[int]:
    """Return how many options to take of knobs: what small ones leave over goes to the others."""
    counts = [min(size, even_share) for size in sizes]
    while True:
        grown = [min(c + 1, size) for c, size in zip(counts, sizes, strict=True)]
        if grown == counts or math.prod(grown) > MAX_NEAR:
            return counts
        counts = grown


def _changed(goal: _Goal, row: Ints, knob: int) -> Ints:
    """Return a row once for each option of a knob."""
    rows = np.repeat(row[None, :], len(goal.sketch.knobs[knob].options), axis=0)
    rows[:, knob] = np.arange(len(rows))
    return rows
