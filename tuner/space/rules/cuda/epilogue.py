"""Epilogues on GPUs: the blocks that read sums from the registers of a thread."""

from __future__ import annotations

from compiler.schedule.trace.handle import BlockRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder


def local_epilogue(draft: SketchBuilder, facts: BlockFacts) -> BlockRV:
    """Keep the output of a reduction in registers; return the block that reads it from there.

    That is the only consumer, if it is elementwise, or a new block that copies the output.
    """
    schedule = draft.schedule
    is_new = set(draft.block_facts())
    block = epilogue_of(draft, facts, "local")
    if draft.block_name(block) in is_new:
        schedule.set_scope(schedule.get_block(facts.name), 0, "local")
    return block
