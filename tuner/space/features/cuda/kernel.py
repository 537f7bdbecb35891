"""The kernel of a nest on a GPU: its threads, memory and code, for a batch of candidates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.gpus import WARP_SIZE, GpuArch
from compiler.target.occupancy import REGISTER_UNIT, Occupancy, occupancy
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.features.cuda.access import KernelAccess
from tuner.space.features.cuda.staged_access import StagedAccess
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, ITEM, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats, NestTables
from tuner.space.tables.shared_copies import SharedCopy

BASE_REGISTERS = 14
"""Registers of a thread besides data: addresses, indices and predicates."""
REGISTERS_PER_RESULT = 1.5
"""Registers for each result of a sum that a thread holds: the sum, and a part of the temporaries.
With these numbers the mean error was 6 registers, the largest 22, on 24 kernels of products,
convolutions and elementwise blocks that NVRTC 13.0 compiled for sm_90a to 10 to 128 registers.
"""
MAX_COPY_REGISTERS = 16
"""Registers between global and shared memory in a loop that NVRTC does not unroll further (same
kernels).
"""


class SketchKernel:
    """The kernel of one nest. Arrays end in an axis of the candidates of the batch.

    Args:
        tables: The extents of the loops.
        values: The table of the sketch.
        copies: The copies in shared memory from which the nest's block computes.
        on_chip: The buffers that stay in shared memory.
        limits: The limits of the architecture.
    """

    def __init__(
        self,
        tables: NestTables,
        values: Ints,
        copies: tuple[SharedCopy, ...],
        on_chip: frozenset[str],
        limits: GpuArch,
    ) -> None:
        self.parts: list[SketchKernel] = [self]
        """The nests of the same kernel, with this one."""
        self.tables = tables
        self.limits = limits
        self._values = values
        self._on_chip = on_chip
        self._copies = {copy.source: copy for copy in copies}

    @property
    def threads(self) -> Floats:
        """Return the threads of a block."""
        threads: Floats = self.tables.level_extents[THREAD]
        return threads

    @property
    def blocks(self) -> Floats:
        """Return the blocks of the grid."""
        blocks: Floats = self.tables.level_extents[BLOCK]
        return blocks

    @cached_property
    def block_order(self) -> list[tuple[int, Floats]]:
        """Return axes and numbers of blocks: consecutive blocks lie along the first pair first."""
        order: list[tuple[int, Floats]] = []
        grouped: list[tuple[int, Floats]] = []
        for axis in reversed(range(len(self.tables.nest.columns))):
            column, blocks = self.tables.nest.columns[axis][BLOCK], self.tables.extents[BLOCK, axis]
            if column is not None:
                group = self._values[:, column].astype(np.float64)
                grouped.append((axis, group))
                blocks = blocks / group
            order.append((axis, blocks))
        return [*grouped, *order]

    @property
    def warps(self) -> Floats:
        """Return the warps of a block."""
        warps: Floats = np.ceil(self.threads / WARP_SIZE)
        return warps

    @cached_property
    def concurrent_items(self) -> Floats:
        """Return, by axis, the items whose results a thread holds at once.

        These are all items if each piece in shared memory serves all, or if nothing is summed.
        """
        facts, items = self.tables.nest.facts, self.tables.extents[ITEM]
        outer = frozenset(column for copy in self._copies.values() for column in copy.outer)
        one_by_one = [
            columns[ITEM] in outer if self._copies else facts.is_reduction
            for columns in self.tables.nest.columns
        ]
        return np.where(np.array(one_by_one)[:, None], 1, items)

    @cached_property
    def thread_tile(self) -> Floats:
        """Return, by axis, the points of a thread whose results are in registers at once."""
        tile: Floats = self.tables.extents[REGISTER] * self.concurrent_items
        return tile

    @cached_property
    def repeats(self) -> Floats:
        """Return the number of tiles that a thread computes one by one."""
        repeats: Floats = np.prod(self.tables.extents[ITEM] / self.concurrent_items, axis=0)
        return repeats

    @cached_property
    def accesses(self) -> list[KernelAccess]:
        """Return the accesses of the nest: the write, then the reads."""
        write, *reads = self.tables.nest.accesses
        return [
            self._direct(write),
            *(self._read(access) for access in reads),
        ]

    def _direct(self, access: TensorAccess) -> KernelAccess:
        on_chip = access.buffer in self._on_chip
        return KernelAccess(self.tables, access, self.thread_tile, on_chip=on_chip)

    def _read(self, access: TensorAccess) -> KernelAccess:
        copy = self._copies.get(access.buffer)
        if copy is None:
            return self._direct(access)
        return StagedAccess(self.tables, access, self.thread_tile, copy, self._values)

    @property
    def staged(self) -> list[StagedAccess]:
        """Return the reads through shared memory."""
        return [access for access in self.accesses if isinstance(access, StagedAccess)]

    @cached_property
    def accumulators(self) -> Floats:
        """Return the results that a thread holds at once."""
        accumulators: Floats = np.prod(self.thread_tile, axis=0)
        return accumulators

    @cached_property
    def pieces(self) -> Floats:
        """Return the pieces that a block copies one after another; 1 without shared memory."""
        pieces: Floats = np.ones_like(self.threads)
        for access in self.staged:
            pieces = np.maximum(pieces, access.visits)
        return pieces

    @cached_property
    def stages(self) -> Ints:
        """Return the pieces of an input in shared memory at once."""
        stages: Ints = np.max(
            [np.ones(len(self.threads), int), *(a.stages for a in self.staged)], 0
        )
        return stages

    @cached_property
    def shared_bytes(self) -> Floats:
        """Return the shared memory of a block, for all nests of the kernel."""
        sizes = {name: size for part in self.parts for name, size in part.shared_buffers().items()}
        return sum(sizes.values(), np.zeros_like(self.threads))

    def shared_buffers(self) -> dict[str, Floats]:
        """Return the bytes of what this nest copies or writes into shared memory, by its name.

        Results that are written chunk by chunk are there for one chunk at a time.
        """
        sizes = {access.access.buffer: access.shared_bytes for access in self.staged}
        write = self.accesses[0]
        if write.on_chip:
            moving = np.array([bool(stride) for stride in write.access.strides])[:, None]
            chunks = np.prod(np.where(moving, self.tables.extents[CHUNK], 1), axis=0)
            sizes[write.access.buffer] = write.block_bytes / chunks
        return sizes

    @cached_property
    def registers_ahead(self) -> Floats:
        """Return the registers of the elements of the next piece that a thread holds meanwhile."""
        ahead = (np.where(a.stages > 1, a.copy_registers, 0) for a in self.staged)
        return sum(ahead, np.zeros_like(self.threads))

    @cached_property
    def conditional_copies_ahead(self) -> Floats:
        """Return the most copies under conditions of a next piece that pass through registers."""
        copies = np.zeros_like(self.threads)
        for access in self.staged:
            if not access.copy.is_conditional:
                continue
            ahead = (access.stages > 1) & (access.copy_registers > 0)
            copies = np.maximum(copies, np.where(ahead, access.copies_per_thread, 0))
        return copies

    @cached_property
    def registers(self) -> Floats:
        """Return an estimate of the registers of a thread, without any limit.

        A sum holds its results, and either the operands of one step or a part of the next piece; if
        it loads pieces ahead, both. Other blocks write over their operands.
        """
        write, *reads = self.accesses
        results = write.registers_of(self.accumulators)
        operands = sum((read.operand_registers for read in reads), np.zeros_like(results))
        if not self.tables.nest.facts.is_reduction:
            return BASE_REGISTERS + np.maximum(results, operands)
        copies = sum((read.copy_registers for read in reads), np.zeros_like(results))
        loaded = np.maximum(operands, np.minimum(copies, MAX_COPY_REGISTERS))
        loaded = np.where(self.stages > 1, operands + copies, loaded)
        return BASE_REGISTERS + REGISTERS_PER_RESULT * results + loaded

    @cached_property
    def max_registers(self) -> Floats:
        """Return the registers that a thread may have if the block is to run: the rest spills."""
        of_warp = self.limits.registers_of_sm / np.ceil(self.threads / WARP_SIZE)
        unit = REGISTER_UNIT / WARP_SIZE
        most: Floats = np.floor(of_warp / WARP_SIZE / unit) * unit
        return np.clip(most, 1, self.limits.max_registers)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Return the blocks of a multiprocessor; registers above the limit spill."""
        registers = np.minimum(self.registers, self.max_registers)
        return occupancy(self.limits, self.threads, registers, self.shared_bytes)

    @cached_property
    def steps(self) -> Floats:
        """Return the steps of a thread: each computes its tile at one point of the reductions."""
        levels = self.tables.level_extents
        steps: Floats = levels[STEP] * levels[UNROLLED] * levels[CHUNK] * self.repeats
        return steps

    @cached_property
    def barriers(self) -> Floats:
        """Return the barriers that a thread meets: two a piece, one with several stages."""
        if not self._copies:
            return np.zeros_like(self.threads)
        barriers: Floats = self.pieces * np.where(self.stages > 1, 1, 2)
        return barriers

    @cached_property
    def shared_loads(self) -> Floats:
        """Return a thread's loads from shared memory in one step."""
        loads = (access.loads_of(access.step_elements) for access in self.staged)
        return sum(loads, np.zeros_like(self.threads))

    @cached_property
    def unrolled(self) -> Floats:
        """Return the points of the unrolled code of a thread."""
        unrolled: Floats = self.accumulators * self.tables.level_extents[UNROLLED]
        return unrolled
