"""The rule for reductions to a single element: each core reduces a part."""

from __future__ import annotations

from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_PARTS = 64
"""Parallel parts of a reduction. More parts lengthen the final sum, and pay only with more cores.
Chosen.
"""
MAX_VECTORS = 8
"""Vectors of partial results: two units with a latency of four cycles need eight sums."""
MIN_POINTS = 1 << 15
"""A smaller reduction runs on one core: a launch of threads costs microseconds. Chosen."""
_OUTER, _INNER, _REGISTERS = 0, 4, 6


class WholeReductions:
    """Reduces parts in parallel, each in lanes, and then the partial results.

    for k in ...:                for k0 in ...:  # parallel
        S += A[k]         ->         for k1 in ...:  # in lanes
                                         S_rf[k0] += A[k0 * n + k1]
                                 for k0 in ...:
                                     S += S_rf[k0]
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each reduction to a single element, if the target has several cores."""
        if draft.target.num_cores == 1:
            return [draft]
        for facts in draft.block_facts().values():
            parts = _parts(draft, facts)
            if not parts or facts.points < MIN_POINTS or facts.name in draft.scheduled:
                continue
            fork = draft.fork("parts")
            try:
                _schedule(fork, facts, parts)
            except ScheduleError:
                continue
            return [fork]
        return [draft]


def _parts(draft: SketchBuilder, facts: BlockFacts) -> list[int]:
    """Return the possible numbers of parts; empty if the block is no such reduction."""
    if facts.lane_axis != len(facts.axes) - 1 or not all(a.is_reduction for a in facts.axes):
        return []
    cores = draft.target.num_cores
    return [d for d in divisors(facts.axes[0].extent) if cores <= d <= MAX_PARTS]


def _schedule(draft: SketchBuilder, facts: BlockFacts, parts: list[int]) -> None:
    schedule = draft.schedule
    chosen, first = draft.choose(parts)
    outer, _ = schedule.split(draft.loops(facts.name)[0], [chosen, None])
    partial = schedule.rfactor(outer, 0)
    loops = draft.loops(partial)
    steps = loops[1:]
    width = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    lanes, column = draft.choose([width * n for n in (1, 2, 4, MAX_VECTORS)])
    is_one = all(facts.runs_on(i, i + 1) for i in range(len(facts.axes) - 1))
    step = schedule.fuse(*steps) if is_one and len(steps) > 1 else steps[-1]
    schedule.annotate(step, KEY, lanes)
    schedule.parallel(loops[0])
    init = schedule.decompose_reduction(partial, step if is_one else steps[0])
    draft.scheduled |= {facts.name, draft.block_name(partial), draft.block_name(init)}
    cut: dict[int, dict[int, int]] = {0: {_OUTER: first}}
    cut.setdefault(len(facts.axes) - 1, {})[_REGISTERS] = column
    columns = tuple(
        tuple(cut.get(index, {}).get(level) for level in range(NUM_LEVELS))
        for index in range(len(facts.axes))
    )
    draft.nests.append(TiledNest(facts, columns, (_INNER,) * len(facts.axes), len(facts.axes) - 1))
