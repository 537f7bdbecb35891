"""The rule for reductions with few outputs: the threads of a block reduce together."""

from __future__ import annotations

from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from compiler.target.gpus import WARP_SIZE
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.levels import BLOCK, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.thread_rows import LENGTHS, ROWS, thread_counts
from tuner.space.rules.cuda.vector_loads import load_vectors
from tuner.space.rules.row_chain import suits_lanes
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_PARTS, MAX_PARTS = 32, 1024
"""Blocks that reduce a part each: one or a few for each multiprocessor. Chosen."""
MIN_PART_POINTS = 1024
"""Points of a part: 256 threads load a vector each. Chosen."""


class CrossThread:
    """Reduces each row by the threads of a block.

    for i, k in ...:         for i0 in ...:  # blockIdx.x
        S[i] += A[i, k]  ->      for i1 in ...:  # threadIdx.y
                                     for k0, k2 in ...:
                                         for k1 in ...:  # threadIdx.x
                                             S[i] += A[...]

    A reduction of everything is cut into equal parts first, which a second kernel reduces.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each reduction along contiguous elements."""
        for name, facts in draft.block_facts().items():
            if not facts.is_reduction or name in draft.scheduled or not suits_lanes(facts):
                continue
            attempt = draft.fork("cross_thread")
            attempt.name = draft.name or attempt.name
            try:
                with attempt.schedule.verified_once():
                    _schedule(attempt, facts)
            except ScheduleError:
                continue
            draft = attempt
        return [draft]


def _schedule(draft: SketchBuilder, facts: BlockFacts) -> None:
    cut = _cut_axis(facts)
    if cut is None:
        _reduce(draft, facts)
        return
    schedule = draft.schedule
    counts = _part_counts(facts, cut)
    count, _ = draft.choose(counts)
    outer, _ = schedule.split(draft.loops(facts.name)[cut], [count, None])
    partial = draft.block_name(schedule.rfactor(outer, 0))
    # The axis has the length of the longest parts here; threads are for the shortest.
    shrinks = counts[-1] // counts[0] if cut == len(facts.axes) - 1 else 1
    _reduce(draft, draft.block_facts()[partial], shrinks)
    _reduce(draft, draft.block_facts()[facts.name])


def _cut_axis(facts: BlockFacts) -> int | None:
    """Return the axis whose parts several blocks reduce; None if one block reduces everything."""
    is_whole = all(axis.is_reduction for axis in facts.axes)
    if not is_whole:
        return None
    axes = range(len(facts.axes))
    return next((axis for axis in axes if _part_counts(facts, axis)), None)


def _part_counts(facts: BlockFacts, axis: int) -> list[int]:
    """Return the numbers of equal parts of an axis that blocks reduce."""
    most = min(MAX_PARTS, facts.points // MIN_PART_POINTS)
    return [d for d in divisors(facts.axes[axis].extent) if MIN_PARTS <= d <= most]


def _reduce(draft: SketchBuilder, facts: BlockFacts, shrinks: int = 1) -> None:
    """Reduce a few rows in each block.

    Args:
        shrinks: The factor by which other decisions may shorten the last axis.
    """
    schedule, loops = draft.schedule, draft.loops(facts.name)
    spatial = [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]
    steps = [index for index, axis in enumerate(facts.axes) if axis.is_reduction]
    rows = [loops[index] for index in spatial]
    schedule.reorder(*rows, *(loops[index] for index in steps))
    length = facts.axes[steps[-1]].extent // shrinks
    vectors = [n for n in LENGTHS if length % n == 0]
    step = loops[steps[-1]]
    if length < max(vectors) * WARP_SIZE:
        # Threads share all axes, so neighbours do not lie in one row.
        step, vectors = _fused(schedule, [loops[index] for index in steps]), [1]
        length = prod(facts.axes[index].extent for index in steps)
    threads, thread_column = draft.choose(thread_counts(length // max(vectors)))
    vector, vector_column = draft.choose(vectors)
    _, thread, item = schedule.split(step, [None, threads, vector])
    schedule.unroll(item)
    columns = {steps[-1]: {THREAD: thread_column, REGISTER: vector_column}}
    rest = dict.fromkeys(spatial, BLOCK) | dict.fromkeys(steps, STEP)
    if rows:
        extent = facts.axes[spatial[-1]].extent
        count, row_column = draft.choose([n for n in ROWS if n == 1 or n <= extent])
        block, row = schedule.split(_fused(schedule, rows), [None, count])
        columns[spatial[-1]] = {THREAD: row_column}
        schedule.bind(block, "blockIdx.x")
        schedule.bind(row, "threadIdx.y")
    schedule.bind(thread, "threadIdx.x")
    if max(vectors) > 1:
        load_vectors(draft, schedule.get_block(facts.name), thread)
    draft.note(facts, columns, rest, vector_axis=steps[-1])
    draft.scheduled.add(facts.name)


def _fused(schedule: Schedule, loops: list[LoopRV]) -> LoopRV:
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]
