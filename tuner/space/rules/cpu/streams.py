"""The choice of non-temporal stores for results that are too large for the caches."""

from __future__ import annotations

from compiler.backends.cpu.codegen.emitters.stores import STREAMS
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder


def offer_streams(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Sample whether a scheduled block uses non-temporal stores, if it moves enough data."""
    moved = facts.write.size_bytes + sum(read.size_bytes for read in facts.reads)
    if 2 * moved <= draft.cpu.l3_bytes:
        return
    chosen, _ = draft.choose((0, 1))
    draft.schedule.annotate(draft.loops(facts.name)[0], STREAMS, chosen)
