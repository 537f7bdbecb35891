"""Vector registers and loads of the innermost tile, for the filter and the features."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.target.cpu import CpuTarget
from tuner.space.tables.nest import (
    REGISTER_LEVEL,
    SPATIAL_LEVELS,
    UNROLLED_LEVEL,
    Floats,
    NestTables,
)

TILE_STEPS = 2.0
"""Steps that one instruction for tiles does: 16 cycles, in which a core starts two multiply-adds
each. 32 rows and columns of tiles, with a sum of 64 bytes, took 58 cycles (Emerald Rapids).
"""


class RegisterTile:
    """The register tile of each candidate of a batch: `rows` rows of `vectors` vectors each.

    A row shorter than a vector occupies a whole one. A row that is not a whole number of vectors
    ends in shorter vectors, each half as long, unless it is filled.
    """

    def __init__(self, tables: NestTables, target: CpuTarget) -> None:
        self._tables = tables
        self.rows = tables.rows
        self.lanes = max(1, target.vector_bits // (8 * tables.nest.facts.write.item_bytes))

    @cached_property
    def vectors(self) -> Floats:
        """The number of vector operations for a row."""
        length = self._tables.vector_length.astype(np.int64)
        whole, rest = length // self.lanes, length % self.lanes
        parts = np.where(self._is_filled, np.minimum(rest, 1), np.bitwise_count(rest))
        return (whole + parts).astype(np.float64)

    @property
    def _is_filled(self) -> npt.NDArray[np.bool_] | bool:
        """Whether rows end in a whole vector: of a part of a row, the next part begins there."""
        nest = self._tables.nest
        if not nest.fills_rows or nest.vector_axis is None:
            return False
        is_whole: npt.NDArray[np.bool_] = (
            self._tables.extents[SPATIAL_LEVELS[2], nest.vector_axis] == 1
        )
        return is_whole

    @property
    def efficiency(self) -> Floats:
        """The share of lanes in use."""
        used: Floats = self._tables.vector_length / (self.vectors * self.lanes)
        return used

    @property
    def accumulators(self) -> Floats:
        """The number of independent results."""
        return self.rows * self.vectors

    @property
    def arithmetic(self) -> Floats:
        """The instructions of a step that multiply and add."""
        return self.accumulators * self._tables.nest.dot.instructions

    @cached_property
    def registers(self) -> Floats:
        """The registers that a step requires: accumulators, one row of operands, one broadcast.

        A product that another instruction adds to its sum requires one more. Sums in tile registers
        require none.
        """
        if self._tables.nest.dot.is_tile:
            return np.ones_like(self.rows)
        return self.accumulators + self.vectors + self._tables.nest.dot.instructions

    @property
    def unrolled_steps(self) -> Floats:
        """The steps of an iteration of the innermost loop."""
        dot = self._tables.nest.dot
        extent = self._tables.level_extents[UNROLLED_LEVEL]
        return np.full_like(extent, TILE_STEPS) if dot.is_tile else extent / dot.size

    @cached_property
    def loads(self) -> Floats:
        """The loads of a step: each operand's part of the tile, in vectors if it is contiguous.

        An access that is not contiguous counts one load for each element.
        """
        tables, vector = self._tables, self._tables.nest.vector_axis
        total = np.zeros_like(self.rows)
        for index, access in enumerate(tables.nest.accesses[1:], start=1):
            elements = tables.elements[index, REGISTER_LEVEL]
            stride = 0 if vector is None else access.strides[vector]
            is_contiguous = stride == 1 or (stride != 0 and index in tables.nest.packed)
            if stride == 0:
                # A box may have gaps: no row loads more than one element for all its lanes.
                elements = np.minimum(elements, self.rows)
            scale = self.vectors / tables.vector_length if is_contiguous else 1.0
            total = total + elements * scale
        return np.maximum(total, 1.0)

    @cached_property
    def shared_loads(self) -> Floats:
        """The registers that hold elements which several unrolled steps broadcast.

        Unrolled steps of a window read elements that overlap those of other steps. LLVM loads each
        of them once, and keeps all in registers until the last step. The neighbours of a group, in
        one dot product, are one step.
        """
        tables, facts = self._tables, self._tables.nest.facts
        vector = tables.nest.vector_axis
        total = np.zeros_like(self.rows)
        for index, access in enumerate(tables.nest.accesses[1:], start=1):
            if vector is None or access.strides[vector]:
                continue
            elements, is_shared = np.ones_like(self.rows), np.zeros(self.rows.shape, np.bool_)
            for dim, row in enumerate(access.coefficients):
                axes = [axis for axis, coefficient in enumerate(row) if coefficient]
                if all(facts.axes[axis].is_reduction for axis in axes):
                    continue  # each step has its own elements
                uses = np.prod(tables.tiles[UNROLLED_LEVEL, axes], axis=0)
                span = tables.spans[index][dim][UNROLLED_LEVEL]
                elements = elements * np.minimum(span, uses)
                is_shared |= span < uses
            total = total + np.where(is_shared & (self.unrolled_steps > 1), elements, 0)
        return total

    @property
    def unrolled_body(self) -> Floats:
        """The number of arithmetic operations in the unrolled innermost code."""
        size: Floats = self.accumulators * self._tables.level_extents[UNROLLED_LEVEL]
        return size
