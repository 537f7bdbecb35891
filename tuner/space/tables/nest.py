"""The table of a tiled block: what each batch of decisions makes of its loops.

A tiled block has seven levels of loops, S S R S R R S from the outside in: each spatial axis is
cut into four, each reduction axis into three, and a part that is not used has extent 1. So one
table fits every block, and everything below is products and sums of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.tables.knob import Ints

NUM_LEVELS = 7
SPATIAL_LEVELS = (0, 1, 3, 6)
REDUCTION_LEVELS = (2, 4, 5)
UNROLLED_LEVEL = 5
REGISTER_LEVEL = 6
LINE_BYTES = 64


@dataclass(frozen=True)
class TiledNest:
    """A block, and where a sketch's table holds the extents of its loops.

    For example, a product of 512 x 512 x 512 whose axes i, j, k are tiled into 4, 4 and 3 parts,
    with the knobs of i in columns 0 to 3, of j in 4 to 7 and of k in 8 to 10, has

        columns[0] = (0, 1, None, 2, None, None, 3)          # i at the levels 0, 1, 3 and 6
        columns[1] = (4, 5, None, 6, None, None, 7)          # j at the same levels
        columns[2] = (None, None, 8, None, 9, 10, None)      # k at the levels 2, 4 and 5
        vector_axis = 1                                      # the loop of column 7 is vectorized

    A candidate whose row begins with 4, 8, 4, 4 runs i in loops of these extents. If a rule cuts
    j by one knob alone, say into panels of 16 at level 6, then `columns[1]` is None but at level 6,
    and the remaining factor, ceil(512 / 16) = 32, lies in level `remainder_levels[1]`.

    Attributes:
        facts: The block.
        columns: `columns[a][l]` is the column with the extent of axis `a` at level `l`; None where
            that extent is 1, or is the remainder.
        remainder_levels: By axis, the level of what the knobs leave over, rounded up; None if
            the knobs have all of the axis.
        vector_axis: The axis whose innermost part is vectorized.
        packed: The accesses, by index, that are first copied into panels in the order of use.
    """

    facts: BlockFacts
    columns: tuple[tuple[int | None, ...], ...]
    remainder_levels: tuple[int | None, ...]
    vector_axis: int | None
    packed: frozenset[int] = frozenset()

    @property
    def accesses(self) -> tuple[TensorAccess, ...]:
        """The output first, then what is read."""
        return (self.facts.write, *self.facts.reads)

    def tables(self, values: Ints) -> NestTables:
        """Return the tables of a batch, from what `Sketch.values` gives."""
        extents = np.ones((NUM_LEVELS, len(self.facts.axes), len(values)))
        for a, axis in enumerate(self.facts.axes):
            for lv, column in enumerate(self.columns[a]):
                if column is not None:
                    extents[lv, a] = values[:, column]
            level = self.remainder_levels[a]
            if level is not None:
                extents[level, a] = np.ceil(axis.extent / np.prod(extents[:, a], axis=0))
        return NestTables(self, extents)


Floats = npt.NDArray[np.float64]


class NestTables:
    """What a batch of N decisions makes of a nest. Arrays end in an axis of length N.

    Floats hold the integers here: products of extents stay exact far beyond what can be run.
    """

    def __init__(self, nest: TiledNest, extents: Floats) -> None:
        self.nest = nest
        self.extents = extents
        """Loop extents by level and axis."""
        self.level_extents: Floats = np.prod(extents, axis=1, dtype=np.float64)
        """How often each level's loops turn, all axes together."""

    @cached_property
    def tiles(self) -> Floats:
        """By level and axis: how far one run of the loops from that level inwards goes."""
        return np.cumprod(self.extents[::-1], axis=0, dtype=np.float64)[::-1]

    @cached_property
    def trips(self) -> Floats:
        """How often the loops from a level inwards are entered; the last entry counts points."""
        outer = np.cumprod(self.level_extents, axis=0)
        return np.vstack([np.ones_like(outer[:1]), outer])

    @cached_property
    def spans(self) -> list[list[Floats]]:
        """By access and dimension: the extent, by level, of the box touched by one run."""
        return [
            [self._span(row, size) for row, size in zip(a.coefficients, a.shape, strict=True)]
            for a in self.nest.accesses
        ]

    def _span(self, row: tuple[int, ...], size: int) -> Floats:
        span = np.ones_like(self.trips[:NUM_LEVELS])
        for axis, coefficient in enumerate(row):
            if coefficient:
                span = span + abs(coefficient) * (self.tiles[:, axis] - 1)
        return np.minimum(span, size)

    @cached_property
    def elements(self) -> Floats:
        """By access and level: how many elements one run touches."""
        return np.stack([np.prod(np.stack(spans), axis=0) for spans in self.spans])

    @cached_property
    def footprints(self) -> Floats:
        """By access and level: the bytes of the cache lines that one run touches."""
        footprints = [
            _line_bytes(access, spans, count)
            for access, spans, count in zip(
                self.nest.accesses, self.spans, self.elements, strict=True
            )
        ]
        for index in self.nest.packed:
            access = self.nest.accesses[index]
            footprints[index] = np.maximum(self.elements[index] * access.item_bytes, LINE_BYTES)
        return np.stack(footprints)

    @cached_property
    def traffic(self) -> Floats:
        """By access and level: bytes moved in all if only one run's footprint is kept near.

        A run finds its data still there if the loops around it do not move that access.
        """
        traffic = np.empty_like(self.footprints)
        for level in range(NUM_LEVELS):
            entered = self.trips[level] * self.footprints[:, level]
            if level:
                stays = self.elements[:, level] == self.elements[:, level - 1]
                entered = np.where(stays, traffic[:, level - 1], entered)
            traffic[:, level] = entered
        return traffic

    @cached_property
    def vector_length(self) -> Floats:
        """The extent of the vectorized loop; 1 without one."""
        axis = self.nest.vector_axis
        if axis is None:
            return np.ones_like(self.level_extents[0])
        length: Floats = self.extents[REGISTER_LEVEL, axis]
        return length

    @cached_property
    def rows(self) -> Floats:
        """The register tile without its vectors: how many scalars or vectors rows are unrolled."""
        rows: Floats = self.level_extents[REGISTER_LEVEL] / self.vector_length
        return rows


def _line_bytes(access: TensorAccess, spans: list[Floats], elements: Floats) -> Floats:
    """Return the bytes of the lines of a box, whose dimensions of full extent run on."""
    contiguous = spans[-1]
    is_full = spans[-1] >= access.shape[-1]
    # A part of a row starts anywhere in a line, so it straddles half a line more.
    straddled = np.where(is_full, 0.0, 0.5)
    for span, extent in zip(spans[-2::-1], access.shape[-2::-1], strict=True):
        contiguous = np.where(is_full, contiguous * span, contiguous)
        is_full = is_full & (span >= extent)
    lines = np.maximum(contiguous * access.item_bytes / LINE_BYTES + straddled, 1)
    touched: Floats = elements / contiguous * lines * LINE_BYTES
    return touched
