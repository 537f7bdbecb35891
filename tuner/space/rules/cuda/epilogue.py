"""Epilogues on GPUs: the blocks that read sums from registers."""

from __future__ import annotations

from compiler.schedule.trace.handle import BlockRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder


def register_epilogue(draft: SketchBuilder, facts: BlockFacts, memory_scope: str) -> BlockRV:
    """Keep the output of a reduction in registers; return the block that reads it from there.

    That is the only consumer, if it is elementwise, or a new block that copies the output.

    Args:
        memory_scope: The registers: "local" of a thread, or "wmma.accumulator" of a warp.
    """
    schedule = draft.schedule
    earlier = set(draft.block_facts())
    block = epilogue_of(draft, facts, memory_scope)
    if draft.block_name(block) in earlier:
        schedule.set_scope(schedule.get_block(facts.name), 0, memory_scope)
    return block
