"""One access of a kernel to global memory, for a batch of candidates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.gpus import WARP_SIZE
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.features.cuda.warps import (
    SECTOR_BYTES,
    by_distinct_rows,
    lane_digits,
    num_sectors,
)
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, ITEM, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats, NestTables

MAX_VECTOR_BYTES = 16
REGISTER_BYTES = 4


class KernelAccess:
    """An access of a nest's block. Arrays end in an axis of the candidates of the batch.

    Args:
        tables: The extents of the loops.
        access: The access.
        thread_tile: The points of a thread in registers, by axis.
        on_chip: Whether the buffer stays in the shared memory of the kernel.
    """

    def __init__(
        self,
        tables: NestTables,
        access: TensorAccess,
        thread_tile: Floats,
        *,
        on_chip: bool = False,
    ) -> None:
        self.access = access
        self.on_chip = on_chip
        self.tables = tables
        self.thread_tile = thread_tile
        self.threads: Floats = tables.level_extents[THREAD]

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the buffer in global memory, or of the one it is gathered from."""
        nest = self.tables.nest
        if nest.source_bytes:
            return nest.source_bytes[nest.accesses.index(self.access)]
        return self.access.size_bytes

    def box(self, tile: Floats) -> Floats:
        """Return the extents of the box that a tile of points touches, by dimension."""
        spans = np.ones((len(self.access.shape), tile.shape[1]))
        for dimension, row in enumerate(self.access.coefficients):
            for axis, coefficient in enumerate(row):
                if coefficient:
                    spans[dimension] += abs(coefficient) * (tile[axis] - 1)
        limited: Floats = np.minimum(spans, np.array(self.access.shape)[:, None])
        return limited

    def elements(self, tile: Floats) -> Floats:
        """Return the elements of the box that a tile of points touches."""
        elements: Floats = np.prod(self.box(tile), axis=0)
        return elements

    def registers_of(self, elements: Floats) -> Floats:
        """Return the registers that elements of this access take."""
        registers: Floats = np.ceil(elements * self.access.item_bytes / REGISTER_BYTES)
        return registers

    def loads_of(self, elements: Floats) -> Floats:
        """Return the loads or stores of a thread for elements of this access."""
        loads: Floats = np.ceil(elements * self.access.item_bytes / self.width)
        return loads

    @cached_property
    def step_elements(self) -> Floats:
        """Return the elements that a thread touches in one step."""
        return self.elements(self.thread_tile)

    @cached_property
    def unrolled_elements(self) -> Floats:
        """Return the elements that a thread touches in the unrolled steps."""
        return self.elements(self.thread_tile * self.tables.extents[UNROLLED])

    @cached_property
    def width(self) -> Ints:
        """Return the bytes of a lane's load or store: a vector, if the access is contiguous."""
        axis = self.tables.nest.vector_axis
        item = self.access.item_bytes
        if axis is None or not self._is_contiguous(axis):
            return np.full(len(self.threads), item, np.int64)
        length = self.tables.extents[REGISTER, axis].astype(np.int64)
        # The largest power of two that divides the vector.
        width: Ints = np.minimum((length & -length) * item, MAX_VECTOR_BYTES)
        return width

    def _is_contiguous(self, axis: int) -> bool:
        *outer, last = self.access.coefficients
        return last[axis] == 1 and not any(row[axis] for row in outer)

    def lane_stride(self, axis: int) -> Ints:
        """Return the distance along an axis between neighbouring threads.

        Each thread has neighbouring vectors and unrolled steps. Its other steps are as far apart as
        all threads reach.
        """
        extents = self.tables.extents
        stride: Floats = extents[UNROLLED, axis] * extents[REGISTER, axis]
        return stride.astype(np.int64)

    @property
    def operand_registers(self) -> Floats:
        """Return the registers of the operands: those of all unrolled steps hide their latency."""
        return self.registers_of(self.unrolled_elements)

    @property
    def copy_registers(self) -> Floats:
        """Return the registers between global and shared memory."""
        return np.zeros(len(self.threads))

    @property
    def shared_bytes(self) -> Floats:
        """Return the shared memory of a block for this access."""
        return np.zeros(len(self.threads))

    @cached_property
    def requests(self) -> Floats:
        """Return the requests of all warps of a block to global memory."""
        if self.on_chip:
            return np.zeros(len(self.threads))
        levels = self.tables.level_extents
        items = levels[ITEM] * levels[REGISTER] / np.prod(self.thread_tile, axis=0)
        visits = np.ceil(self.threads / WARP_SIZE) * items
        if self.access is self.tables.nest.facts.write:
            stores: Floats = visits * self.loads_of(self.step_elements)
            return stores
        steps = levels[CHUNK] * levels[STEP]
        loads: Floats = visits * self.loads_of(self.unrolled_elements) * steps
        return loads

    @cached_property
    def sectors_per_request(self) -> Ints:
        """Return the sectors that a request of the first warp touches."""
        columns = list(self.tables.extents[THREAD].astype(np.int64))
        columns += [self.lane_stride(axis) for axis in range(len(self.access.strides))]
        return by_distinct_rows(columns, self._sectors)

    def _sectors(self, columns: list[Ints]) -> Ints:
        half = len(columns) // 2
        digits = lane_digits(np.stack(columns[:half]), self.tables.nest.lanes)
        offsets = np.zeros(digits.shape[1:], np.int64)
        for stride, digit, lane_stride in zip(
            self.access.strides, digits, columns[half:], strict=True
        ):
            offsets += abs(stride) * digit * lane_stride
        return num_sectors(offsets * self.access.item_bytes)

    @property
    def ideal_sectors(self) -> Floats:
        """Return the sectors of a request whose lanes touch consecutive memory."""
        return np.maximum(self.width * np.minimum(self.threads, WARP_SIZE) / SECTOR_BYTES, 1)

    @property
    def issued_bytes(self) -> Floats:
        """Return the bytes that a block moves between the second-level cache and its threads."""
        return self.requests * self.sectors_per_request * SECTOR_BYTES * self.inside

    @cached_property
    def inside(self) -> Floats:
        """Return the share of the points that are not beyond the end of an axis of the access."""
        share = np.ones(len(self.threads))
        for axis, stride in enumerate(self.access.strides):
            if stride:
                extent = self.tables.nest.facts.axes[axis].extent
                share = share * extent / np.prod(self.tables.extents[:, axis], axis=0)
        return share

    @cached_property
    def block_bytes(self) -> Floats:
        """Return the bytes of the elements that a block touches."""
        tile: Floats = np.prod(self.tables.extents[BLOCK + 1 :], axis=0)
        return self.elements(tile) * self.access.item_bytes
