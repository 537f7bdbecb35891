"""The table of a tiled block: the loop extents for each batch of decisions.

A tiled block has seven levels of loops, S S R S R R S from the outside in: each spatial axis is cut
into four, each reduction axis into three. An unused part has extent 1. So one table fits every
block, and all facts below are products and sums of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.tables.knob import Ints
from tuner.space.tables.tensor_tile import TensorTile

NUM_LEVELS = 7
SPATIAL_LEVELS = (0, 1, 3, 6)
REDUCTION_LEVELS = (2, 4, 5)
UNROLLED_LEVEL = 5
REGISTER_LEVEL = 6
LINE_BYTES = 64
_NO_DOT = DotGroup()


@dataclass(frozen=True)
class TiledNest:
    """A block, and the columns of a sketch's table with the extents of its loops.

    For example, a product of 512 x 512 x 512 whose axes i, j, k are tiled into 4, 4 and 3 parts,
    with the knobs of i in columns 0 to 3, of j in 4 to 7 and of k in 8 to 10, has

        columns[0] = (0, 1, None, 2, None, None, 3)          # i at the levels 0, 1, 3 and 6
        columns[1] = (4, 5, None, 6, None, None, 7)          # j at the same levels
        columns[2] = (None, None, 8, None, 9, 10, None)      # k at the levels 2, 4 and 5
        vector_axis = 1                                      # the loop of column 7 is vectorized

    A candidate whose row begins with 4, 8, 4, 4 runs i in loops of these extents. A rule may cut j
    by a single knob, for example into panels of 16 at level 6. Then `columns[1]` is None except at
    level 6. The remaining factor, ceil(512 / 16) = 32, is at level `remainder_levels[1]`.

    Attributes:
        facts: The block.
        columns: `columns[a][l]` is the column with the extent of axis `a` at level `l`; None if
            that extent is 1, or is the remainder.
        remainder_levels: By axis, the level of the factor that knobs do not decide, rounded up;
            None if the knobs decide the whole axis. A column at the same level is a factor too.
        vector_axis: The axis whose innermost part is vectorized.
        packed: The indices of the accesses that are first copied into panels, in the order of use.
        prepacked: Those of `packed` whose panels are made once, of constants, outside of each run.
        lanes: On a GPU, pairs of an axis and a number of neighbours along it. The lanes of a warp
            are numbered along the last pair first. Without pairs, they are numbered along the last
            axis first.
        source_bytes: By access, the bytes of the array in global memory, if copies gather elements
            from arrays with other layouts.
        tensor_tile: What one instruction of tensor cores computes: loops of these extents are at
            the innermost level of each axis.
        dot: The unrolled steps of a sum that a CPU multiplies and adds at once.
        fills_rows: Whether the end of a whole row of a tile is one vector, which the compiler fills
            because the program allocates all arrays (`compiler/passes/cpu/fill_vectors.py`).
    """

    facts: BlockFacts
    columns: tuple[tuple[int | None, ...], ...]
    remainder_levels: tuple[int | None, ...]
    vector_axis: int | None
    packed: frozenset[int] = frozenset()
    prepacked: frozenset[int] = frozenset()
    lanes: tuple[tuple[int, int], ...] = ()
    source_bytes: tuple[int, ...] = ()
    tensor_tile: TensorTile | None = None
    dot: DotGroup = _NO_DOT
    fills_rows: bool = False

    @property
    def accesses(self) -> tuple[TensorAccess, ...]:
        """The write, then the reads."""
        return (self.facts.write, *self.facts.reads)

    def tables(self, values: Ints) -> NestTables:
        """Return the tables of a batch, from the result of `Sketch.values`."""
        extents = np.ones((NUM_LEVELS, len(self.facts.axes), len(values)))
        for a, axis in enumerate(self.facts.axes):
            for lv, column in enumerate(self.columns[a]):
                if column is not None:
                    extents[lv, a] = values[:, column]
            if self.tensor_tile is not None and a in self.tensor_tile.units:
                innermost = UNROLLED_LEVEL if axis.is_reduction else REGISTER_LEVEL
                extents[innermost, a] *= self.tensor_tile.units[a]
            level = self.remainder_levels[a]
            if level is not None:
                extents[level, a] *= np.ceil(axis.extent / np.prod(extents[:, a], axis=0))
        return NestTables(self, extents)


Floats = npt.NDArray[np.float64]


class NestTables:
    """Facts of a nest for a batch of N decisions. The last axis of each array has length N.

    Floats hold integers: products of extents are exact up to 2**53, more than any program runs.
    """

    def __init__(self, nest: TiledNest, extents: Floats) -> None:
        self.nest = nest
        self.extents = extents
        """Loop extents by level and axis."""
        self.level_extents: Floats = np.prod(extents, axis=1, dtype=np.float64)
        """By level: the iterations of its loops, over all axes."""

    @cached_property
    def tiles(self) -> Floats:
        """By level and axis: the extent covered by one run of the loops from that level inwards."""
        return np.cumprod(self.extents[::-1], axis=0, dtype=np.float64)[::-1]

    @cached_property
    def trips(self) -> Floats:
        """By level: how often the loops from it inwards start; the last entry counts points."""
        outer = np.cumprod(self.level_extents, axis=0)
        return np.vstack([np.ones_like(outer[:1]), outer])

    @cached_property
    def spans(self) -> list[list[Floats]]:
        """By access and dimension: the extent, by level, of the box touched by one run."""
        return [
            [self._span(access, dim) for dim in range(len(access.shape))]
            for access in self.nest.accesses
        ]

    def _span(self, access: TensorAccess, dim: int) -> Floats:
        span = np.ones_like(self.trips[:NUM_LEVELS])
        for axis, coefficient in enumerate(access.coefficients[dim]):
            if coefficient:
                divisor = access.divisors[dim][axis] if access.divisors else 1
                span = span + abs(coefficient) * (np.ceil(self.tiles[:, axis] / divisor) - 1)
        return np.minimum(span, access.shape[dim])

    @cached_property
    def elements(self) -> Floats:
        """By access and level: the number of elements that one run touches."""
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
        """By access and level: total bytes moved if the cache holds the footprint of one run.

        Data stay in the cache if the loops around a run do not move the access.
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
        """The number of unrolled rows of the register tile, each a vector or a scalar."""
        rows: Floats = self.level_extents[REGISTER_LEVEL] / self.vector_length
        return rows


def _line_bytes(access: TensorAccess, spans: list[Floats], elements: Floats) -> Floats:
    """Return the bytes of the cache lines of a box; dimensions of full extent are contiguous."""
    contiguous = spans[-1]
    is_full = spans[-1] >= access.shape[-1]
    # Part of a row starts anywhere in a line, so on average it touches half a line more.
    straddled = np.where(is_full, 0.0, 0.5)
    for span, extent in zip(spans[-2::-1], access.shape[-2::-1], strict=True):
        contiguous = np.where(is_full, contiguous * span, contiguous)
        is_full = is_full & (span >= extent)
    lines = np.maximum(contiguous * access.item_bytes / LINE_BYTES + straddled, 1)
    touched: Floats = elements / contiguous * lines * LINE_BYTES
    return touched
