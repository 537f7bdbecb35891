"""The rule for reductions with few outputs: the threads of a block reduce together."""

from __future__ import annotations

from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.levels import BLOCK, STEP, THREAD, UNROLLED
from tuner.space.rules.cuda.thread_rows import LENGTHS, ROWS, thread_counts
from tuner.space.rules.row_chain import suits_lanes
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_PARTS, MAX_PARTS = 32, 1024
"""Blocks that reduce a part each: one or a few for each multiprocessor. Chosen."""
MIN_POINTS = 1 << 15
"""One block reduces fewer points: a second kernel costs microseconds. Chosen."""


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
    parts = [d for d in divisors(facts.points) if MIN_PARTS <= d <= MAX_PARTS]
    is_whole = all(axis.is_reduction for axis in facts.axes)
    if not is_whole or not parts or facts.points < MIN_POINTS:
        _reduce(draft, facts)
        return
    schedule = draft.schedule
    loops = draft.loops(facts.name)
    fused = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
    count, _ = draft.choose(parts)
    outer, _ = schedule.split(fused, [count, None])
    partial = schedule.rfactor(outer, 0)
    for block in (draft.block_name(partial), facts.name):
        _reduce(draft, draft.block_facts()[block])


def _reduce(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Reduce a few rows in each block."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    spatial = [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]
    steps = [index for index, axis in enumerate(facts.axes) if axis.is_reduction]
    length = prod(facts.axes[index].extent for index in steps)
    threads, thread_column = draft.choose(thread_counts(length))
    vectors = [n for n in LENGTHS if facts.axes[steps[-1]].extent % n == 0]
    vector, vector_column = draft.choose(vectors)
    rows = [loops[index] for index in spatial]
    schedule.reorder(*rows, *(loops[index] for index in steps))
    step = _fused(schedule, [loops[index] for index in steps])
    outer, thread, item = schedule.split(step, [None, threads, vector])
    schedule.reorder(outer, item, thread)
    schedule.unroll(item)
    columns = {steps[-1]: {THREAD: thread_column, UNROLLED: vector_column}}
    rest = dict.fromkeys(spatial, BLOCK) | dict.fromkeys(steps, STEP)
    if rows:
        extent = facts.axes[spatial[-1]].extent
        count, row_column = draft.choose([n for n in ROWS if n == 1 or n <= extent])
        block, row = schedule.split(_fused(schedule, rows), [None, count])
        columns[spatial[-1]] = {THREAD: row_column}
        schedule.bind(block, "blockIdx.x")
        schedule.bind(row, "threadIdx.y")
    schedule.bind(thread, "threadIdx.x")
    draft.note(facts, columns, rest)
    draft.scheduled.add(facts.name)


def _fused(schedule: Schedule, loops: list[LoopRV]) -> LoopRV:
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]
