"""The rule for all other blocks: neighbouring threads compute neighbouring elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites, special_facts
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.levels import BLOCK, ITEM, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.vectors import flat_vector_lengths, vector_lengths
from tuner.space.rules.sketch_builder import SketchBuilder

THREADS = (256, 128, 512, 64, 1024, 32)
"""Threads of a block, in the order of the knob: whole warps, up to the limit of CUDA. Chosen."""
ITEMS = (1, 2, 4, 8)
"""Elements, or vectors, that each thread computes: more have more loads in flight. Chosen."""


class FlatBlocks:
    """Fuses the spatial loops of a block, and cuts them into blocks, items, threads and vectors.

    for i, j in ...:                for b in ...:  # blockIdx.x
        B[i, j] = f(A[i, j])   ->       for item in ...:  # unrolled
                                            for t in ...:  # threadIdx.x
                                                for v in ...:  # vectorized
                                                    B[...] = f(A[...])

    The threads of a warp access consecutive memory, whatever the number of items. A reduction or a
    scan runs in each thread; the sum of a reduction stays in a register.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule every block that no other rule scheduled, if it has spatial axes."""
        for site in sites(draft.schedule.func):
            facts = block_facts(site) or special_facts(site)
            if facts is None or facts.name in draft.scheduled or not _spatial(facts):
                continue
            attempt = draft.fork("flat")
            attempt.name = draft.name or attempt.name
            try:
                with attempt.schedule.verified_once():
                    _schedule(attempt, facts)
            except ScheduleError:
                continue  # lowering binds the loops of this block
            draft = attempt
        return [draft]


def _spatial(facts: BlockFacts) -> list[int]:
    return [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]


def _schedule(draft: SketchBuilder, facts: BlockFacts) -> None:
    if facts.is_reduction and facts.name in draft.block_facts():
        _schedule_sum(draft, facts)
    else:
        _schedule_elements(draft, facts)
    draft.scheduled.add(facts.name)


def _schedule_sum(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Add up in a register, inside of the loops of the block that reads the sum from there."""
    schedule = draft.schedule
    reader = register_epilogue(draft, facts, "local")
    cut = _cut(draft, draft.loops(reader), facts)
    update = schedule.get_block(facts.name)
    schedule.compute_at(update, cut.thread, preserve_unit_loops=True)
    first = draft.loops(update)[3 + len(_spatial(facts))]
    cut.bind(schedule)
    draft.scheduled.add(draft.block_name(schedule.decompose_reduction(update, first)))
    draft.scheduled.add(draft.block_name(update))
    _note(draft, facts, cut.columns)


def _schedule_elements(draft: SketchBuilder, facts: BlockFacts) -> None:
    schedule, spatial = draft.schedule, _spatial(facts)
    loops = draft.loops(facts.name)
    around = [loops[index] for index in spatial]
    if facts.is_reduction:
        steps = [loop for index, loop in enumerate(loops) if index not in spatial]
        schedule.reorder(*around, *steps)
        cut = _cut(draft, around, facts)
        cut.bind(schedule)
        _note(draft, facts, cut.columns)
        return
    lengths, flat_lengths = (
        vector_lengths(draft, facts, spatial[-1]),
        flat_vector_lengths(draft, facts),
    )
    if max(flat_lengths) > max(lengths):
        # Rows are no whole vectors, but all rows together are, except for the end.
        lengths, around = flat_lengths, [_fused(schedule, around)]
    length, column = draft.choose(lengths)
    around[-1], vector = schedule.split(around[-1], [None, length])
    cut = _cut(draft, around, facts)
    schedule.vectorize(vector)
    cut.bind(schedule)
    _note(draft, facts, {**cut.columns, REGISTER: column})


@dataclass(frozen=True)
class _FlatLoops:
    """The loops over blocks, items and threads, and the columns of their extents."""

    block: LoopRV
    item: LoopRV
    thread: LoopRV
    columns: dict[int, int]

    def bind(self, schedule: Schedule) -> None:
        """Bind the loops; it comes last, because each step on threads is verified."""
        schedule.unroll(self.item)
        schedule.bind(self.block, "blockIdx.x")
        schedule.bind(self.thread, "threadIdx.x")


def _cut(draft: SketchBuilder, loops: list[LoopRV], facts: BlockFacts) -> _FlatLoops:
    """Fuse spatial loops, and cut them."""
    schedule = draft.schedule
    points = prod(facts.axes[index].extent for index in _spatial(facts))
    fewest = min(THREADS)
    items, item_column = draft.choose([n for n in ITEMS if n == 1 or n * fewest <= points])
    threads, thread_column = draft.choose([n for n in THREADS if n == fewest or n <= points])
    block, item, thread = schedule.split(_fused(schedule, loops), [None, items, threads])
    return _FlatLoops(block, item, thread, {ITEM: item_column, THREAD: thread_column})


def _fused(schedule: Schedule, loops: list[LoopRV]) -> LoopRV:
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]


def _note(draft: SketchBuilder, facts: BlockFacts, columns: dict[int, int]) -> None:
    flat = facts.flattened()
    rest = {0: BLOCK, **dict.fromkeys(range(1, len(flat.axes)), STEP)}
    draft.note(flat, {0: columns}, rest, vector_axis=0 if REGISTER in columns else None)
