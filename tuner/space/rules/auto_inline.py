"""The rule that inlines elementwise producers into their consumers."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites
from tuner.space.analysis.transposed_axes import transposed_axes
from tuner.space.rules.sketch_builder import SketchBuilder


class AutoInline:
    """Inlines a spatial block into spatial consumers, so that a chain becomes one block.

    A producer of a reduction is inlined only if each of its elements is read once. Otherwise each
    step would compute it again. Blocks with arithmetic and several consumers stay, and so do blocks
    with conditional loads, unless a transpose of them reads and writes contiguous rows then:

        for y, x, c in ...:                                  for c, y, x in ...:
            A[y, x, c] = B[y, x] if c < 1 else C[y, x]  ->       D[c, y, x] = B[y, x] if c < 1 ...
        for c, y, x in ...:
            D[c, y, x] = A[y, x, c]
    """

    def __init__(self, not_inlined: AbstractSet[str] = frozenset()) -> None:
        """Store the names of blocks that stay."""
        self._not_inlined = not_inlined

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Inline all possible blocks; sample no decisions."""
        for name in list(draft.block_facts()):
            facts = draft.block_facts()
            if name in facts and name not in self._not_inlined and _is_inlined(draft, facts, name):
                draft.schedule.compute_inline(draft.schedule.get_block(name))
        for name, block in draft.block_facts().items():
            if name not in self._not_inlined and block.is_conditional and _gains_rows(draft, name):
                draft.schedule.compute_inline(draft.schedule.get_block(name))
        return [draft]


def _is_inlined(draft: SketchBuilder, facts: dict[str, BlockFacts], name: str) -> bool:
    block = facts[name]
    consumers = draft.consumers(name)
    if block.is_reduction or block.is_conditional or not draft.is_intermediate(name):
        return False
    if not consumers or any(c not in facts for c in consumers):
        return False
    if any(facts[c].is_reduction for c in consumers):
        return len(consumers) == 1 and _is_read_once(block, facts[consumers[0]])
    return len(consumers) == 1 or block.flops_per_point == 0


def _gains_rows(draft: SketchBuilder, name: str) -> bool:
    """Return whether a block is only transposed, into contiguous rows of all that it reads."""
    consumers = draft.consumers(name)
    facts = draft.block_facts()
    if len(consumers) != 1 or not draft.is_intermediate(name) or facts[name].flops_per_point:
        return False
    (consumer,) = consumers
    if consumer not in facts or transposed_axes(facts[consumer]) is None:
        return False
    schedule = draft.schedule.copy()
    schedule.compute_inline(schedule.get_block(name))
    inlined = next(site for site in sites(schedule.func) if site.block.name == consumer)
    joined = block_facts(inlined)
    return joined is not None and joined.vector_axis is not None


def _is_read_once(block: BlockFacts, consumer: BlockFacts) -> bool:
    """Return whether a reduction that runs in lanes reads each element of a block once."""
    return consumer.lane_axis is not None and consumer.points == block.points
