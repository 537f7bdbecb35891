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
    def shape(self) -> Ints:
        """Return the extents of a piece in the layout of shared memory, by dimension."""
        shape = np.stack([-(-self.piece[axis] // divisor) for axis, divisor, _ in self.copy.layout])
        for extents, (_, _, modulus) in zip(shape, self.copy.layout, strict=True):
            if modulus:
                np.minimum(extents, modulus, out=extents)
        return shape

    @cached_property
    def strides(self) -> Ints:
        """Return the strides of a piece in shared memory, in elements, by its dimensions."""
        shape = self.shape
        alignments = {
            axis % len(shape): (factor, offset) for axis, factor, offset in self.copy.alignments
        }
        strides = np.ones_like(shape)
        for dimension in reversed(range(len(shape) - 1)):
            stride = strides[dimension + 1] * shape[dimension + 1]
            if dimension in alignments:
                factor, offset = alignments[dimension]
                stride = stride + (offset - stride) % factor
            strides[dimension] = stride
        return strides

    def _addresses(self, indices: Ints, strides: Ints) -> Ints:
        """Return the byte in shared memory of each lane.

        Args:
            indices: The element of each lane, by dimension of the source, lane and candidate.
            strides: The strides in shared memory, by its dimensions and candidate.
        """
        addresses = np.zeros(indices.shape[1:], np.int64)
        for (axis, divisor, modulus), stride in zip(self.copy.layout, strides, strict=True):
            digit = indices[axis] // divisor
            addresses += (digit % modulus if modulus else digit) * stride
        return addresses * self.access.item_bytes

    @cached_property
    def width(self) -> Ints:
        """Return the bytes of a lane's load: neighbours in shared memory that it needs at once."""
        dimension, divisor, modulus = self.copy.layout[-1]
        row = self.access.coefficients[dimension]
        length = np.ones(len(self.threads), np.int64)
        for axis, coefficient in enumerate(row):
            others = sum(abs(other[axis]) for other in self.access.coefficients)
            if coefficient == 1 and others == 1 and divisor == 1:
                elements = self.tables.extents[REGISTER, axis].astype(np.int64)
                length = np.maximum(length, elements & -elements)
        if modulus:
            length = np.minimum(length, modulus & -modulus)
        width: Ints = np.minimum(length * self.access.item_bytes, MAX_VECTOR_BYTES)
        return width

    @cached_property
    def length(self) -> Ints:
        """Return the elements that a lane copies at once."""
        if self.copy.vector is None:
            return np.ones(len(self.threads), np.int64)
        return self.copy.vector.extents(self._values)

    @cached_property
    def stages(self) -> Ints:
        """Return the pieces in shared memory at once."""
        return self.copy.pieces_in_memory(self._values)

    @property
    def bytes_in_flight(self) -> Floats:
        """Return the bytes that a block copies at once: those of all pieces ahead, or of one."""
        pieces: Floats = self.shared_bytes / self.stages * np.maximum(self.stages - 1, 1)
        return pieces

    @property
    def shared_bytes(self) -> Floats:
        """Return the bytes of the pieces in shared memory at once, as lowering aligns them."""
        size = self.shape[0] * self.strides[0] * self.access.item_bytes * self.stages
        aligned: Ints = -(-size // ALIGNMENT) * ALIGNMENT
        return aligned.astype(np.float64)

    @property
    def operand_registers(self) -> Floats:
        """Return the registers of the operands of one step."""
        return self.registers_of(self.step_elements)

    @property
    def copies_per_thread(self) -> Floats:
        """Return the vectors that a thread copies for one piece."""
        copies: Floats = np.ceil(np.prod(self.piece, axis=0) / (self.threads * self.length))
        return copies

    @property
    def copy_registers(self) -> Floats:
        """Return the registers between global and shared memory; none of asynchronous copies.

        Vectors share no register: two single elements of two bytes take two.
        """
        of_vector = self.registers_of(self.length.astype(np.float64))
        registers: Floats = self.copies_per_thread * of_vector
        if self.copy.is_async:
            return np.where(self.stages > 1, 0, registers)
        return registers

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
        num_axes = len(self.access.strides)
        columns = [self.width, *self.tables.extents[THREAD].astype(np.int64)]
        columns += [self.lane_stride(axis) for axis in range(num_axes)]
        return by_distinct_rows([*columns, *self.strides], self._read_wavefronts)

    def _read_wavefronts(self, columns: list[Ints]) -> Ints:
        width, *rest = columns
        count = len(self.access.strides)
        lanes = lane_digits(np.stack(rest[:count]), self.tables.nest.lanes)
        lanes = lanes * np.stack(rest[count : 2 * count])[:, None]
        indices = np.abs(np.tensordot(self.access.coefficients, lanes, axes=1))
        return num_wavefronts(self._addresses(indices, np.stack(rest[2 * count :])), width)

    @cached_property
    def write_wavefronts(self) -> Ints:
        """Return the wavefronts of a request of the first warp that stores a part of a piece."""
        return by_distinct_rows([self.length, *self.piece, *self.strides], self._write_wavefronts)

    def _write_wavefronts(self, columns: list[Ints]) -> Ints:
        length, *rest = columns
        count = len(self.piece)
        indices = _lane_indices(length, rest[:count])
        addresses = self._addresses(indices, np.stack(rest[count:]))
        return num_wavefronts(addresses, self._copy_width(length))

    def _copy_width(self, length: Ints) -> Ints:
        """Return the bytes of a store: a vector, if it is contiguous in shared memory, too."""
        axis, divisor, modulus = self.copy.layout[-1]
        is_contiguous = axis == len(self.piece) - 1 and divisor == 1
        length = np.minimum(length, modulus or length) if is_contiguous else np.ones_like(length)
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
        flat, indices[dimension] = np.divmod(flat, piece[dimension])
    return indices
