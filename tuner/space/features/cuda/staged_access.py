"""An access of a kernel through copies in shared memory, for a batch of candidates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.passes.device.shared_memory import ALIGNMENT
from compiler.target.gpus import WARP_SIZE
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.features.cuda.access import MAX_VECTOR_BYTES, KernelAccess
from tuner.space.features.cuda.warps import (
    SECTOR_BYTES,
    WORD_BYTES,
    by_distinct_rows,
    lane_digits,
    num_sectors,
    num_wavefronts,
)
from tuner.space.rules.cuda.levels import CHUNK, ITEM, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats, NestTables
from tuner.space.tables.shared_copies import SharedCopy

_MOVABLE = (ITEM, CHUNK, STEP, UNROLLED)
"""The levels whose loops are outside of a copy if the sketch's program has them there. Blocks are
always outside, threads and their registers always inside.
"""


class StagedAccess(KernelAccess):
    """A read of a nest's block from a copy in shared memory.

    All threads of a block copy a piece, as consecutive vectors; then each reads what it needs.

    Args:
        tables: The extents of the loops.
        access: The access, to the buffer that is copied.
        thread_tile: The points of a thread in registers, by axis.
        copy: The copy.
        values: The table of the sketch.
    """

    def __init__(
        self,
        tables: NestTables,
        access: TensorAccess,
        thread_tile: Floats,
        copy: SharedCopy,
        values: Ints,
    ) -> None:
        super().__init__(tables, access, thread_tile)
        self.copy = copy
        self._values = values

    @cached_property
    def _tile(self) -> Floats:
        """Return, by axis, the points whose elements a piece holds."""
        extents = self.tables.extents
        tile: Floats = extents[THREAD] * extents[REGISTER]
        for axis, columns in enumerate(self.tables.nest.columns):
            for level in _MOVABLE:
                if not self._is_outside(columns[level], level):
                    tile[axis] = tile[axis] * extents[level, axis]
        return tile

    def _is_outside(self, column: int | None, level: int) -> bool:
        return level == CHUNK if column is None else column in self.copy.outer

    @cached_property
    def piece(self) -> Ints:
        """Return the extents of a piece, by dimension."""
        return self.box(self._tile).astype(np.int64)

    @cached_property
    def strides(self) -> Ints:
        """Return the strides of a piece in shared memory, in elements, by dimension."""
        piece = self.piece
        alignments = {
            axis % len(piece): (factor, offset) for axis, factor, offset in self.copy.alignments
        }
        strides = np.ones_like(piece)
        for dimension in reversed(range(len(piece) - 1)):
            stride = strides[dimension + 1] * piece[dimension + 1]
            if dimension in alignments:
                factor, offset = alignments[dimension]
                stride = stride + (offset - stride) % factor
            strides[dimension] = stride
        return strides

    @cached_property
    def length(self) -> Ints:
        """Return the elements that a lane copies at once."""
        if self.copy.vector is None:
            return np.ones(len(self.threads), np.int64)
        return self.copy.vector.extents(self._values)

    @property
    def shared_bytes(self) -> Floats:
        """Return the bytes of the pieces in shared memory at once, as lowering aligns them."""
        size = self.piece[0] * self.strides[0] * self.access.item_bytes * self.copy.stages
        aligned: Ints = -(-size // ALIGNMENT) * ALIGNMENT
        return aligned.astype(np.float64)

    @property
    def operand_registers(self) -> Floats:
        """Return the registers of the operands of one step."""
        return self.registers_of(self.step_elements)

    @property
    def copy_registers(self) -> Floats:
        """Return the registers between global and shared memory; none of asynchronous copies."""
        if self.copy.is_async:
            return np.zeros(len(self.threads))
        return self.registers_of(np.ceil(np.prod(self.piece, axis=0) / self.threads))

    @cached_property
    def visits(self) -> Floats:
        """Return the pieces that a block copies."""
        visits: Floats = np.prod(np.prod(self.tables.extents[1:], axis=0) / self._tile, axis=0)
        return visits

    @cached_property
    def requests(self) -> Floats:
        """Return the requests of all warps of a block to global memory."""
        of_piece = np.ceil(np.prod(self.piece, axis=0) / (WARP_SIZE * self.length))
        requests: Floats = self.visits * of_piece
        return requests

    @cached_property
    def sectors_per_request(self) -> Ints:
        """Return the sectors that a request of the first warp touches."""
        return by_distinct_rows([self.length, *self.piece], self._sectors)

    def _sectors(self, columns: list[Ints]) -> Ints:
        length, *piece = columns
        sizes = np.cumprod([1, *self.access.shape[:0:-1]])[::-1]
        offsets = np.tensordot(sizes, _lane_indices(length, piece), axes=1)
        return num_sectors(offsets * self.access.item_bytes)

    @property
    def ideal_sectors(self) -> Floats:
        """Return the sectors of a request whose lanes touch consecutive memory."""
        width = self.length * self.access.item_bytes
        return np.maximum(width * np.minimum(self.threads, WARP_SIZE) / SECTOR_BYTES, 1)

    @cached_property
    def read_wavefronts(self) -> Ints:
        """Return the wavefronts of a request of the first warp that reads a piece."""
        columns = [self.width, *self.tables.extents[THREAD].astype(np.int64)]
        return by_distinct_rows([*columns, *self._lane_distances()], self._read_wavefronts)

    def _lane_distances(self) -> Ints:
        """Return, by axis, the distance in a piece between neighbouring threads, in elements."""
        distances = np.zeros((len(self.access.strides), len(self.threads)), np.int64)
        for row, stride in zip(self.access.coefficients, self.strides, strict=True):
            for axis, coefficient in enumerate(row):
                distances[axis] += abs(coefficient) * stride * self.lane_stride(axis)
        return distances

    def _read_wavefronts(self, columns: list[Ints]) -> Ints:
        width, *rest = columns
        half = len(rest) // 2
        distances = np.stack(rest[half:])[:, None]
        offsets = (lane_digits(np.stack(rest[:half])) * distances).sum(axis=0)
        return num_wavefronts(offsets * self.access.item_bytes, width)

    @cached_property
    def write_wavefronts(self) -> Ints:
        """Return the wavefronts of a request of the first warp that stores a part of a piece."""
        columns = [self.length, *self.piece, *self.strides]
        return by_distinct_rows(columns, self._write_wavefronts)

    def _write_wavefronts(self, columns: list[Ints]) -> Ints:
        length, *rest = columns
        half = len(rest) // 2
        strides = np.stack(rest[half:])[:, None]
        offsets = (_lane_indices(length, rest[:half]) * strides).sum(axis=0)
        return num_wavefronts(offsets * self.access.item_bytes, self._copy_width(length))

    def _copy_width(self, length: Ints) -> Ints:
        width: Ints = np.minimum(length * self.access.item_bytes, MAX_VECTOR_BYTES)
        return width

    @property
    def read_conflicts(self) -> Floats:
        """Return the wavefronts of a read, as a multiple of those without bank conflicts."""
        return self.read_wavefronts / np.maximum(self.width // WORD_BYTES, 1)

    @property
    def write_conflicts(self) -> Floats:
        """Return the wavefronts of a store, as a multiple of those without bank conflicts."""
        return self.write_wavefronts / np.maximum(self._copy_width(self.length) // WORD_BYTES, 1)


def _lane_indices(length: Ints, piece: list[Ints]) -> Ints:
    """Return the index in a piece that each lane of the first warp copies.

    Threads copy consecutive vectors. Lanes beyond the end copy the first one again.

    Returns:
        An array by dimension, lane and candidate.
    """
    flat = np.arange(WARP_SIZE)[:, None] * length
    flat = np.where(flat < np.prod(piece, axis=0), flat, 0)
    indices = np.empty((len(piece), *flat.shape), np.int64)
    for dimension in reversed(range(len(piece))):
        indices[dimension] = flat % piece[dimension]
        flat = flat // piece[dimension]
    return indices
