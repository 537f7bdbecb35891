"""The rule for blocks that read along one axis and write along another, such as transposes."""

from __future__ import annotations

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.transposed_axes import transposed_axes
from tuner.space.rules.cuda.levels import BLOCK, ITEM, THREAD
from tuner.space.rules.sketch_builder import SketchBuilder

TILES = (32, 64, 16)
"""Rows and columns of a tile: 32 floats fill a transaction of 128 bytes. Chosen."""
THREADS = (256, 128, 512)
"""Threads of a block, in the order of the knob. Chosen."""
BANKS = 32
"""Banks of shared memory, of four bytes each; rows of a tile begin in neighbouring banks."""


class SharedTransposes:
    """Copies a tile of the input to shared memory by rows, and reads it there by columns.

    for i, j in ...:             for b in ...:  # blockIdx.x
        B[i, j] = A[j, i]   ->       for t in ...:  # threadIdx.x
                                         A_shared[...] = A[...]
                                     for t in ...:  # threadIdx.x
                                         B[...] = A_shared[...]

    Threads of a warp then access consecutive elements of both tensors.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each transposed block."""
        for name, facts in draft.block_facts().items():
            if name in draft.scheduled or len(facts.reads) != 1 or not transposed_axes(facts):
                continue
            attempt = draft.fork("transposed")
            attempt.name = draft.name or attempt.name
            try:
                with attempt.schedule.verified_once():
                    _schedule(attempt, facts)
            except ScheduleError:
                continue
            draft = attempt
        return [draft]


def _schedule(draft: SketchBuilder, facts: BlockFacts) -> None:
    axes = transposed_axes(facts)
    assert axes is not None, "it is transposed"
    read, written = axes
    schedule, loops = draft.schedule, draft.loops(facts.name)
    block = schedule.get_block(facts.name)
    threads, thread_column = draft.choose(THREADS)
    # Threads share tiles, not axes; for the estimate they lie along the written axis.
    columns = {written: {THREAD: thread_column}}
    outer, inner = [], []
    for index in (read, written):
        extent = facts.axes[index].extent
        size, column = draft.choose([n for n in TILES if n < 2 * extent] or [min(TILES)])
        if index == read:
            columns[read] = {ITEM: column}
        parts = schedule.split(loops[index], [None, size])
        outer.append(parts[0])
        inner.append(parts[1])
    around = [loop for index, loop in enumerate(loops) if index not in axes]
    schedule.reorder(*around, *outer, *inner)
    grid = schedule.fuse(*around, *outer)
    schedule.bind(grid, "blockIdx.x")
    _share(draft, inner, threads)
    copy = schedule.cache_read(block, facts.reads[0].buffer, "shared")
    schedule.compute_at(copy, grid, preserve_unit_loops=True)
    schedule.storage_align(copy, 0, -2, BANKS, 1)
    _share(draft, draft.loops(copy)[1:], threads)
    draft.scheduled |= {facts.name, draft.block_name(copy)}
    draft.note(facts, columns, dict.fromkeys(range(len(facts.axes)), BLOCK))


def _share(draft: SketchBuilder, loops: list[LoopRV], threads: ExprRV) -> None:
    """Share the iterations of loops among the threads of a block, neighbours by neighbours."""
    schedule = draft.schedule
    item, thread = schedule.split(schedule.fuse(*loops), [None, threads])
    schedule.unroll(item)
    schedule.bind(thread, "threadIdx.x")
