"""The rule for all other blocks: neighbouring threads compute neighbouring elements."""

from __future__ import annotations

from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites, special_facts
from tuner.space.rules.cuda.epilogue import local_epilogue
from tuner.space.rules.cuda.levels import BLOCK, ITEM, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.vectors import vector_lengths
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling

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
    reader = local_epilogue(draft, facts)
    thread, levels = _bind(draft, draft.loops(reader), facts)
    schedule.compute_at(schedule.get_block(facts.name), thread, preserve_unit_loops=True)
    draft.tilings.append(Tiling(facts.name, tile_loop=2, reduction_loop=3 + len(_spatial(facts))))
    _note(draft, facts, levels)


def _schedule_elements(draft: SketchBuilder, facts: BlockFacts) -> None:
    schedule, spatial = draft.schedule, _spatial(facts)
    loops = draft.loops(facts.name)
    around = [loops[index] for index in spatial]
    steps = [loop for index, loop in enumerate(loops) if index not in spatial]
    if steps:
        schedule.reorder(*around, *steps)
        _, levels = _bind(draft, around, facts)
        _note(draft, facts, levels)
        return
    length, column = draft.choose(vector_lengths(draft, facts, spatial[-1]))
    around[-1], vector = schedule.split(around[-1], [None, length])
    _, levels = _bind(draft, around, facts)
    schedule.vectorize(vector)
    _note(draft, facts, {**levels, REGISTER: column})


def _bind(
    draft: SketchBuilder, loops: list[LoopRV], facts: BlockFacts
) -> tuple[LoopRV, dict[int, int]]:
    """Fuse spatial loops, cut and bind them; return the loop over threads, and the columns."""
    schedule = draft.schedule
    points = prod(facts.axes[index].extent for index in _spatial(facts))
    fewest = min(THREADS)
    items, item_column = draft.choose([n for n in ITEMS if n == 1 or n * fewest <= points])
    threads, thread_column = draft.choose([n for n in THREADS if n == fewest or n <= points])
    fused = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
    block, item, thread = schedule.split(fused, [None, items, threads])
    schedule.bind(block, "blockIdx.x")
    schedule.unroll(item)
    schedule.bind(thread, "threadIdx.x")
    return thread, {ITEM: item_column, THREAD: thread_column}


def _note(draft: SketchBuilder, facts: BlockFacts, levels: dict[int, int]) -> None:
    flat = facts.flattened()
    rest = {0: BLOCK, **dict.fromkeys(range(1, len(flat.axes)), STEP)}
    draft.note(flat, {0: levels}, rest, vector_axis=0 if REGISTER in levels else None)
