"""The rule for long reductions with few outputs side by side, such as sums of columns."""

from __future__ import annotations

from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_OUTPUTS = 1 << 16
"""More outputs have a thread each on every multiprocessor: 132 times 512 of them. Chosen."""
MIN_STEPS = 16
"""Steps of a part: a shorter one does not pay for the second kernel. Chosen."""
PARTS = range(4, 257)
"""Parts of a reduction. Chosen."""


class SplitSums:
    """Cuts long reductions into parts, which a second kernel adds up.

    for j, k in ...:            for p, j, k1 in ...:
        S[j] += A[k, j]   ->        S_rf[p, j] += A[p * n + k1, j]
                                for j, p in ...:
                                    S[j] += S_rf[p, j]

    Both run in the threads of `FlatBlocks`, which access neighbouring columns: the parts have more
    threads than the columns alone. A sketch without parts remains.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch in which each such reduction is cut."""
        fork = draft.fork("split_sums")
        for name, facts in draft.block_facts().items():
            counts = _part_counts(facts)
            if name in draft.scheduled or not counts:
                continue
            axis = next(index for index, axis in enumerate(facts.axes) if axis.is_reduction)
            count, _ = fork.choose(counts)
            try:
                outer, _ = fork.schedule.split(fork.loops(name)[axis], [count, None])
                fork.schedule.rfactor(outer, 0)
            except ScheduleError:
                return [draft]
        return [fork, draft] if fork.knobs[len(draft.knobs) :] else [draft]


def _part_counts(facts: BlockFacts) -> list[int]:
    """Return the numbers of equal parts of the first reduced axis; none for other blocks."""
    steps = [axis.extent for axis in facts.axes if axis.is_reduction]
    outputs = prod(axis.extent for axis in facts.axes if not axis.is_reduction)
    is_across = facts.vector_axis is not None and len(facts.reads) == 1
    if not steps or not is_across or outputs > MAX_OUTPUTS:
        return []
    return [d for d in divisors(steps[0]) if d in PARTS and prod(steps) >= d * MIN_STEPS]
