"""The rule for products: a tile of the output for each block, and one for each thread of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.rules.cuda.operand_copies import (
    NUM_THREAD_AXES,
    VECTOR,
    WIDE,
    OperandCopy,
    bind_threads,
)
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_STEPS = 8
"""A shorter sum ends before shared memory pays for its barriers. Chosen."""
THREADS = (16, 8, 32, 4, 2, 1)
"""Threads along an axis, in the order of the knob. Chosen."""
REGISTERS = (4, 8, 2, 1)
"""Elements of a thread along an axis: 8 x 8 sums, their operands and addresses fit 255 registers.
"""
STEPS = (2, 1, 4, 8)
UNROLLED_STEPS = (4, 8, 2)
"""Steps of the reduction in a chunk: loops, and unrolled ones. 8 to 32 are common. Chosen."""
WHOLE = 7
"""A reduction axis that is at most as long, such as a window's, is a part of each chunk. Chosen."""


class ThreadTiles:
    """Tiles sums of products by blocks and threads, with operands in shared memory.

    for i, j, k in ...:         for b in ...:  # blockIdx.x
        C[i, j] += ...    ->        for t in ...:  # threadIdx.x, y
                                        for k0 in ...:
                                            A_shared, B_shared = ...  # by all threads
                                            for k1, k2, i2, j2 in ...:  # k2, i2, j2 unrolled
                                                C_local[...] += ...
                                        C[...] = f(C_local[...])

    Sizes need not divide: guards cut off the rest. There are up to two sketches. In `wide_tiles`,
    each thread has eight neighbours along the last axis, read from shared memory as two vectors. In
    `tiles`, they are at most one vector.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Tile every product; fork for each layout of the first one's operands."""
        drafts = [draft]
        for name, facts in draft.block_facts().items():
            tile = find_tile(facts)
            if tile is not None and name not in draft.scheduled:
                # More layouts for a later product would leave too few trials for each sketch.
                limit = 1 if any(d.scheduled for d in drafts) else None
                drafts = [fork for d in drafts for fork in _tiled(d, tile)[:limit] or [d]]
        return drafts


@dataclass(frozen=True)
class ProductTile:
    """A sum of products, and its axes by their part.

    Attributes:
        rows: The longest spatial axes that an operand does not have, but for the column.
        column: The spatial axis along which the output is contiguous, or nearly so.
        batch: The other spatial axes: a block computes one element of them.
    """

    facts: BlockFacts
    rows: tuple[int, ...]
    column: int
    batch: tuple[int, ...]

    @property
    def tiled(self) -> tuple[int, ...]:
        """Return the axes whose tiles threads compute; the column is the last one."""
        return (*self.rows, self.column)

    @property
    def steps(self) -> list[int]:
        """Return the axes that are summed over."""
        return [index for index, axis in enumerate(self.facts.axes) if axis.is_reduction]


def find_tile(facts: BlockFacts) -> ProductTile | None:
    """Return the axes of a sum of products of operands that neighbours share; else None."""
    axes = facts.axes
    length = prod(axis.extent for axis in axes if axis.is_reduction)
    if not facts.is_reduction or not facts.is_affine or len(facts.reads) < 2 or length < MIN_STEPS:
        return None
    spatial = [index for index, axis in enumerate(axes) if not axis.is_reduction]
    operands = [frozenset(i for i in spatial if read.strides[i]) for read in facts.reads]
    tiled = [i for i in spatial if axes[i].extent > 1 and any(i not in o for o in operands)]
    if not any((a - b) & set(tiled) and (b - a) & set(tiled) for a in operands for b in operands):
        return None
    column = min(tiled, key=lambda index: facts.write.strides[index])
    others = sorted((i for i in tiled if i != column), key=lambda i: -axes[i].extent)
    rows = tuple(sorted(others[: NUM_THREAD_AXES - 1]))
    batch = tuple(index for index in spatial if index not in (*rows, column))
    return ProductTile(facts, rows, column, batch)


def _tiled(draft: SketchBuilder, tile: ProductTile) -> list[SketchBuilder]:
    forks = []
    for name, is_wide in (("wide_tiles", True), ("tiles", False)):
        if is_wide and not _suits_wide(tile):
            continue
        fork = draft.fork(name)
        try:
            with fork.schedule.verified_once():
                _TileScheduler(fork, tile, is_wide=is_wide).run()
        except ScheduleError:
            continue
        forks.append(fork)
    return forks


def _suits_wide(tile: ProductTile) -> bool:
    """Return whether an operand has whole eights of four-byte elements along the column."""
    for read in tile.facts.reads:
        dim = dimension(read, tile.column)
        if dim is not None and OperandCopy(tile.facts, read, tile.tiled, tile.column).is_wide:
            return read.item_bytes == VECTOR and read.shape[dim] % WIDE == 0
    return False


@dataclass
class _TileScheduler:
    """Schedules one product."""

    draft: SketchBuilder
    tile: ProductTile
    is_wide: bool
    columns: dict[int, dict[int, int]] = field(default_factory=dict)
    rest: dict[int, int] = field(default_factory=dict)
    blocks: list[LoopRV] = field(default_factory=list)
    chunks: list[LoopRV] = field(default_factory=list)
    steps: list[LoopRV] = field(default_factory=list)
    unrolled: list[LoopRV] = field(default_factory=list)
    threads: dict[int, ExprRV] = field(default_factory=dict)
    thread_loops: list[LoopRV] = field(default_factory=list)
    registers: list[LoopRV] = field(default_factory=list)

    def run(self) -> None:
        """Tile the loops, stage the operands, and place the epilogue."""
        draft, facts, schedule = self.draft, self.tile.facts, self.draft.schedule
        epilogue = register_epilogue(draft, facts, "local")
        loops = draft.loops(facts.name)
        self.blocks += [loops[index] for index in self.tile.batch]
        for index in self.tile.tiled:
            self._split_spatial(index, loops[index])
        for index in self.tile.steps:
            self._split_reduction(index, loops[index])
        inner = [*self.chunks, *self.steps, *self.unrolled, *self.registers]
        schedule.reorder(*self.blocks, *self.thread_loops, *inner)
        block = schedule.fuse(*self.blocks) if len(self.blocks) > 1 else self.blocks[0]
        thread = self.thread_loops[-1]
        schedule.reverse_compute_at(epilogue, thread, preserve_unit_loops=True)
        self._expand_epilogue(epilogue)
        for loop in (*self.unrolled, *self.registers):
            schedule.unroll(loop)
        # Late, because each step on a program with threads is verified.
        schedule.bind(block, "blockIdx.x")
        bind_threads(schedule, self.thread_loops)
        self._stage(self.chunks[-1] if self.chunks else thread)
        update = schedule.get_block(facts.name)
        first = [*self.chunks, *self.steps, *self.unrolled][0]
        draft.scheduled.add(draft.block_name(schedule.decompose_reduction(update, first)))
        draft.scheduled |= {facts.name, draft.block_name(update)}
        draft.note(facts, self.columns, self.rest, vector_axis=self.tile.column)

    def _split_spatial(self, index: int, loop: LoopRV) -> None:
        draft, extent = self.draft, self.tile.facts.axes[index].extent
        is_wide_column = self.is_wide and index == self.tile.column
        registers = (WIDE,) if is_wide_column else self._registers(index)
        threads, thread_column = draft.choose(_thread_counts(-(-extent // min(registers))))
        elements, register_column = draft.choose(registers)
        block, thread, register = draft.schedule.split(loop, [None, threads, elements])
        self.blocks.append(block)
        self.thread_loops.append(thread)
        self.registers.append(register)
        self.threads[index] = threads
        self.columns[index] = {THREAD: thread_column, REGISTER: register_column}
        self.rest[index] = BLOCK

    def _registers(self, index: int) -> list[int]:
        """Return the numbers of elements of a thread along an axis: a part of it, not all."""
        extent, write = self.tile.facts.axes[index].extent, self.tile.facts.write
        limit = self.draft.gpu.limits.max_vector_bytes // write.item_bytes
        most = min(limit, WIDE) if index == self.tile.column else REGISTERS[1]
        # A single row of a tile would leave too little for all threads to copy.
        return [n for n in REGISTERS if 1 < n <= most and n < extent] or [1]

    def _split_reduction(self, index: int, loop: LoopRV) -> None:
        draft, extent = self.draft, self.tile.facts.axes[index].extent
        if extent <= WHOLE:
            self.steps.append(loop)
            self.rest[index] = STEP
            return
        length, length_column = draft.choose([n for n in STEPS if n < 2 * extent])
        unrolled, unrolled_column = draft.choose([n for n in UNROLLED_STEPS if n < 2 * extent])
        chunk, step, inner = draft.schedule.split(loop, [None, length, unrolled])
        self.chunks.append(chunk)
        self.steps.append(step)
        self.unrolled.append(inner)
        self.columns[index] = {STEP: length_column, UNROLLED: unrolled_column}
        self.rest[index] = CHUNK

    def _stage(self, at: LoopRV) -> None:
        """Copy the operands that change in the reduction to shared memory."""
        facts, wide_axis = self.tile.facts, self.tile.column if self.is_wide else None
        copies = [
            OperandCopy(facts, read, self.tile.tiled, wide_axis)
            for read in facts.reads
            if any(read.strides[index] for index in self.tile.steps)
        ]
        threads = list(self.threads.values())
        depth = 1 + len(threads) + len(self.chunks)
        for copy in copies:
            copy.add(self.draft, at, threads, depth)

    def _expand_epilogue(self, epilogue: BlockRV) -> None:
        """Unroll the loops over a thread's elements, and store vectors if they are aligned."""
        schedule, write = self.draft.schedule, self.tile.facts.write
        *outer, last = self.draft.loops(epilogue)[1 + len(self.threads) :]
        is_last = dimension(write, self.tile.column) == len(write.shape) - 1
        if not is_last or write.shape[-1] % self._registers(self.tile.column)[0]:
            outer.append(last)
        elif self.is_wide:
            half, vector = schedule.split(last, [None, VECTOR])
            schedule.vectorize(vector)
            outer.append(half)
        else:
            schedule.vectorize(last)
        for loop in outer:
            schedule.unroll(loop)


def _thread_counts(extent: int) -> list[int]:
    """Return the numbers of threads along an axis of this many elements, or vectors."""
    return [n for n in THREADS if n < 2 * extent]
