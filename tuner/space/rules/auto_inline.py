"""The rule that inlines elementwise producers into their consumers."""

from __future__ import annotations

from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder


class AutoInline:
    """Inlines a spatial block into spatial consumers, so that a chain becomes one block.

    A producer of a reduction is inlined only if each of its elements is read once. Otherwise each
    step would compute it again. Blocks with arithmetic and several consumers stay, and so do blocks
    with conditional loads.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Inline all possible blocks; sample no decisions."""
        for name in list(draft.block_facts()):
            facts = draft.block_facts()
            if name in facts and _is_inlined(draft, facts, name):
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


def _is_read_once(block: BlockFacts, consumer: BlockFacts) -> bool:
    """Return whether a reduction that runs in lanes reads each element of a block once."""
    return consumer.lane_axis is not None and consumer.points == block.points
