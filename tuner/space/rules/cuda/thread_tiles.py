"""The rule for products: a tile of the output for each block, and one for each thread of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import prod
from operator import mul

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.target.gpus import WARP_SIZE, nearest_gpu
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cuda.chunk_pipelines import CHUNKS_AHEAD, ChunkPipeline, pipeline_chunks
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.rules.cuda.operand_copies import (
    VECTOR,
    WIDE,
    OperandCopy,
    Size,
    bind_threads,
)
from tuner.space.rules.cuda.product_tiles import ProductTile, find_tile
from tuner.space.rules.cuda.window_products import WindowProduct, form_windows
from tuner.space.rules.sketch_builder import SketchBuilder

THREADS = (16, 8, 32, 4, 2, 1)
"""Threads along an axis, in the order of the knob. Chosen."""
ROW_WARPS = (4, 2, 8, 1)
COLUMN_WARPS = (2, 1, 4)
"""Warps of a block along an axis: tiles of 16 to 256 rows, and of 64 to 256 columns. Chosen."""
WIDE_ROWS = (8, 4)
"""Rows of a thread in wide tiles: one or two vectors of a transposed operand. Chosen."""
WARP_ROWS = (2, 2)
WARP_COLUMNS = 8
"""The lanes of a warp: 4 x 8, numbered along two of the rows first, then along the columns.

So lanes `n` and `n ^ 1` read the same columns, and `n` and `n ^ 2` the same rows. Then one request
of 16 bytes a lane takes two wavefronts instead of four (NVIDIA's developer forum, "Unexpected
shared memory bank conflict").
"""
REGISTERS = (4, 8, 2, 1)
"""Elements of a thread along an axis: 8 x 8 sums, their operands and addresses fit 255 registers.
"""
STEPS = (2, 1, 4, 8)
UNROLLED_STEPS = (4, 8, 2)
"""Steps of the reduction in a chunk: loops, and unrolled ones. 8 to 32 are common. Chosen."""
WHOLE = 7
"""A reduction axis that is at most as long, such as a window's, is a part of each chunk. Chosen."""
MIN_PIPELINED = 32
"""A shorter reduction has too few chunks for asynchronous copies ahead. Chosen."""
SUFFIXES = {ChunkPipeline.NONE: "", ChunkPipeline.REGISTERS: "", ChunkPipeline.ASYNC: "_async"}
GROUPED_ROWS = (1, 4, 8, 16)
"""Rows of blocks that share the columns of a product in the second-level cache. Chosen."""
ROWS_OF_BLOCK = 64
"""Rows of a small block: a grid with fewer rows of such blocks than a group has is not grouped."""


class ThreadTiles:
    """Tiles sums of products by blocks and threads, with operands in shared memory.

    for i, j, k in ...:         for b in ...:  # blockIdx.x
        C[i, j] += ...    ->        for t in ...:  # threadIdx.x, y
                                        for k0 in ...:  # pipelined
                                            A_shared, B_shared = ...  # by all threads
                                            for k1, k2, i2, j2 in ...:  # k2, i2, j2 unrolled
                                                C_local[...] += ...
                                        C[...] = f(C_local[...])

    Sizes need not divide: guards cut off the rest. In `wide_tiles`, a warp has 4 x 8 lanes. Each
    has eight neighbours along the last axis, read from shared memory as two vectors. In `tiles`,
    they are at most one vector. Operands of later chunks arrive in registers, or by asynchronous
    copies (`wide_tiles_async`, `tiles_async`).
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


def _tiled(draft: SketchBuilder, tile: ProductTile) -> list[SketchBuilder]:
    """Return a sketch for each layout and pipeline of a product, and for those of its windows."""
    layouts = [("wide_tiles", True)] if _suits_wide(tile) else []
    forks = []
    for name, is_wide in (*layouts, ("tiles", False)):
        for pipeline in _pipelines(tile):
            fork = draft.fork(name + SUFFIXES[pipeline])
            try:
                with fork.schedule.verified_once():
                    _TileScheduler(fork, tile, is_wide, pipeline).run()
            except ScheduleError:
                continue
            forks.append(fork)
    return [*_window_tiles(draft, tile), *forks]


def _window_tiles(draft: SketchBuilder, tile: ProductTile) -> list[SketchBuilder]:
    """Return the sketches of a convolution as a product of matrices."""
    forks = []
    for pipeline in (ChunkPipeline.REGISTERS, ChunkPipeline.ASYNC):
        fork = draft.fork("window_tiles" + SUFFIXES[pipeline])
        try:
            with fork.schedule.verified_once():
                windows = form_windows(fork, tile.facts)
                if windows is None:
                    return []
                is_wide = _suits_wide(windows.tile) and _fills_gpu(fork, windows.tile)
                _TileScheduler(fork, windows.tile, is_wide, pipeline, windows).run()
        except ScheduleError:
            continue
        forks.append(fork)
    return forks


def _pipelines(tile: ProductTile) -> list[ChunkPipeline]:
    """Return the pipelines that suit the chunks of a product."""
    longest = max(tile.facts.axes[index].extent for index in tile.steps)
    if longest <= WHOLE:
        return [ChunkPipeline.NONE]
    if longest < MIN_PIPELINED:
        return [ChunkPipeline.REGISTERS]
    return [ChunkPipeline.REGISTERS, ChunkPipeline.ASYNC]


def _suits_wide(tile: ProductTile) -> bool:
    """Return whether an operand has whole eights of four-byte elements along the column.

    Columns and rows must fill more than half of the lanes of a warp.
    """
    axes = tile.facts.axes
    if 2 * axes[tile.column].extent <= WARP_COLUMNS * WIDE:
        return False
    if axes[tile.rows[-1]].extent <= 2 * min(WIDE_ROWS):
        return False
    for read in tile.facts.reads:
        dim = dimension(read, tile.column)
        if dim is not None and OperandCopy(tile.facts, read, tile.tiled, tile.column).is_wide:
            return read.item_bytes == VECTOR and read.shape[dim] % WIDE == 0
    return False


def _fills_gpu(draft: SketchBuilder, tile: ProductTile) -> bool:
    """Return whether the smallest wide tiles are as many as the multiprocessors."""
    axes = tile.facts.axes
    rows = -(-axes[tile.rows[-1]].extent // (prod(WARP_ROWS) * min(WIDE_ROWS)))
    columns = -(-axes[tile.column].extent // (WARP_COLUMNS * WIDE))
    others = prod(axes[index].extent for index in (*tile.batch, *tile.rows[:-1]))
    gpu = draft.gpu.gpu or nearest_gpu(draft.gpu.arch)
    return rows * columns * others >= gpu.num_sms


@dataclass
class _TileScheduler:
    """Schedules one product.

    Attributes:
        windows: The convolution that the product was, if it was one.
        columns: By axis and level, the column of the sketch's table.
        rest: By axis, the level of the remainder.
        groups: The loops over groups of rows of blocks.
        blocks: The loops over blocks.
        grouped: The loops over the rows of blocks in a group.
        threads: The numbers of threads along each loop over threads.
    """

    draft: SketchBuilder
    tile: ProductTile
    is_wide: bool
    pipeline: ChunkPipeline
    windows: WindowProduct | None = None
    columns: dict[int, dict[int, int]] = field(default_factory=dict)
    rest: dict[int, int] = field(default_factory=dict)
    groups: list[LoopRV] = field(default_factory=list)
    blocks: list[LoopRV] = field(default_factory=list)
    grouped: list[LoopRV] = field(default_factory=list)
    chunks: list[LoopRV] = field(default_factory=list)
    steps: list[LoopRV] = field(default_factory=list)
    unrolled: list[LoopRV] = field(default_factory=list)
    threads: list[Size] = field(default_factory=list)
    thread_loops: list[LoopRV] = field(default_factory=list)
    lane_loops: dict[int, list[LoopRV]] = field(default_factory=dict)
    registers: list[LoopRV] = field(default_factory=list)

    def run(self) -> None:
        """Tile the loops, stage the operands, and place the epilogue."""
        draft, facts, schedule = self.draft, self.tile.facts, self.draft.schedule
        epilogue = self._epilogue()
        loops = draft.loops(facts.name)
        for index in self.tile.tiled:
            self._split_spatial(index, loops[index])
        for index in self.tile.steps:
            self._split_reduction(index, loops[index])
        batch = [loops[index] for index in self.tile.batch]
        outer = [*batch, *self.groups, *self.blocks, *self.grouped]
        inner = [*self.chunks, *self.steps, *self.unrolled, *self.registers]
        self._order(outer, inner)
        block = schedule.fuse(*outer) if len(outer) > 1 else outer[0]
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
        draft.note(
            facts,
            self.columns,
            self.rest,
            vector_axis=self.tile.column,
            lanes=self._lanes(),
            source_bytes=() if self.windows is None else self.windows.source_bytes,
        )

    def _epilogue(self) -> BlockRV:
        """Keep the sums in registers; return the block that reads them."""
        draft, facts = self.draft, self.tile.facts
        if self.windows is None:
            return register_epilogue(draft, facts, "local")
        draft.schedule.set_scope(draft.schedule.get_block(facts.name), 0, "local")
        draft.scheduled.add(self.windows.epilogue)
        return draft.schedule.get_block(self.windows.epilogue)

    def _lanes(self) -> tuple[tuple[int, int], ...]:
        """Return how the lanes of a warp lie along axes, if the sketch decides it."""
        if not self.is_wide:
            return ()
        row, column = self.tile.rows[-1], self.tile.column
        first, last = WARP_ROWS
        return ((row, first), (column, WARP_COLUMNS), (row, last))

    def _order(self, outer: list[LoopRV], inner: list[LoopRV]) -> None:
        """Put the loops over threads between those over blocks and those of a thread."""
        schedule = self.draft.schedule
        if not self.is_wide:
            schedule.reorder(*outer, *self.thread_loops, *inner)
            return
        first, last = self.lane_loops[self.tile.rows[-1]]
        (column,) = self.lane_loops[self.tile.column]
        schedule.reorder(*outer, *self.thread_loops, first, column, last, *inner)
        lanes = schedule.fuse(first, column, last)
        self.thread_loops = [schedule.fuse(*self.thread_loops), lanes]
        self.threads = [reduce(mul, self.threads), WARP_SIZE]

    def _split_spatial(self, index: int, loop: LoopRV) -> None:
        draft, extent = self.draft, self.tile.facts.axes[index].extent
        is_wide_column = self.is_wide and index == self.tile.column
        registers = [WIDE] if is_wide_column else self._registers(index)
        threads, thread_column = self._choose_threads(index, registers)
        elements, register_column = draft.choose(registers)
        self.columns[index] = {THREAD: thread_column, REGISTER: register_column}
        self.rest[index] = BLOCK
        inner: list[Size] = [threads, *self._warp(index), elements]
        sizes = [n for n in GROUPED_ROWS if n == 1 or n * ROWS_OF_BLOCK <= extent]
        if index == self.tile.rows[-1] and len(sizes) > 1:
            rows, self.columns[index][BLOCK] = draft.choose(sizes)
            group, block, thread, *lanes, register = draft.schedule.split(
                loop, [None, rows, *inner]
            )
            self.groups.append(group)
            self.grouped.append(block)
        else:
            block, thread, *lanes, register = draft.schedule.split(loop, [None, *inner])
            self.blocks.append(block)
        self.threads.append(threads)
        self.thread_loops.append(thread)
        self.lane_loops[index] = lanes
        self.registers.append(register)

    def _warp(self, index: int) -> tuple[int, ...]:
        """Return the numbers of lanes of a warp along an axis, if the sketch decides them."""
        if not self.is_wide:
            return ()
        if index == self.tile.column:
            return (WARP_COLUMNS,)
        return WARP_ROWS if index == self.tile.rows[-1] else ()

    def _choose_threads(self, index: int, registers: list[int]) -> tuple[ExprRV, int]:
        """Choose the threads, or warps, along an axis."""
        extent = self.tile.facts.axes[index].extent
        if not self.is_wide:
            parts = -(-extent // min(registers))
            return self.draft.choose([n for n in THREADS if n < 2 * parts])
        lanes = prod(self._warp(index))
        counts = ROW_WARPS if index == self.tile.rows[-1] else COLUMN_WARPS
        # No warp is idle in all blocks: its sums would not be proved to be its own.
        used = [n for n in counts if (n - 1) * lanes * max(registers) < extent]
        return self.draft.scaled(used, lanes)

    def _registers(self, index: int) -> list[int]:
        """Return the numbers of elements of a thread along an axis: a part of it, not all."""
        extent, write = self.tile.facts.axes[index].extent, self.tile.facts.write
        limit = self.draft.gpu.limits.max_vector_bytes // write.item_bytes
        most = min(limit, WIDE) if index == self.tile.column else REGISTERS[1]
        if self.is_wide and index == self.tile.rows[-1]:
            return [n for n in WIDE_ROWS if 2 * n < extent]
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
        draft, facts = self.draft, self.tile.facts
        wide_axis = self.tile.column if self.is_wide else None
        gathered = {} if self.windows is None else self.windows.vector_lengths
        copies = [
            OperandCopy(
                facts, read, self.tile.tiled, wide_axis, self.pipeline, gathered.get(read.buffer)
            )
            for read in facts.reads
            if any(read.strides[index] for index in self.tile.steps)
        ]
        placed = [copy.place(draft, at) for copy in copies]
        if self.is_wide:
            for copy in placed:
                copy.add_fragment(draft, [*self.steps, *self.unrolled][-1])
        for copy in placed:
            copy.distribute(draft, self.threads)
        has_local_stage = [copy.has_local_stage for copy in placed]
        if self.pipeline is ChunkPipeline.REGISTERS:
            pipeline_chunks(draft.schedule, at, has_local_stage, 1)
        elif self.pipeline is ChunkPipeline.ASYNC:
            # Registers hold one chunk.
            counts = CHUNKS_AHEAD[:1] if any(has_local_stage) else CHUNKS_AHEAD
            pipeline_chunks(draft.schedule, at, has_local_stage, draft.choose(counts)[0])

    def _expand_epilogue(self, epilogue: BlockRV) -> None:
        """Unroll the loops over a thread's elements, and store vectors if they are aligned."""
        schedule, write = self.draft.schedule, self.tile.facts.write
        *outer, last = self.draft.loops(epilogue)[1 + len(self.threads) :]
        is_last = dimension(write, self.tile.column) == len(write.shape) - 1
        if self.windows is not None:
            has_vectors = self.windows.has_vectors
        else:
            has_vectors = is_last and write.shape[-1] % self._registers(self.tile.column)[0] == 0
        if not has_vectors:
            outer.append(last)
        elif self.is_wide:
            half, vector = schedule.split(last, [None, VECTOR])
            schedule.vectorize(vector)
            outer.append(half)
        else:
            schedule.vectorize(last)
        for loop in outer:
            schedule.unroll(loop)
