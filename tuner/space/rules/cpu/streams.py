"""The choice of storing past the caches what is too large to be found there again."""

from __future__ import annotations

from compiler.backends.cpu.codegen.emitters.stores import STREAMS
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder


def offer_streams(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Let the search choose how a block that is scheduled already stores, if it moves so much."""
    moved = facts.write.size_bytes + sum(read.size_bytes for read in facts.reads)
    if 2 * moved <= draft.cpu.l3_bytes:
        return
    chosen, _ = draft.choose((0, 1))
    draft.schedule.annotate(draft.loops(facts.name)[0], STREAMS, chosen)
