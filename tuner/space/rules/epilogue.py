"""Epilogues: consumers of a block's output that run on each finished tile."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.schedule.trace.handle import BlockRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.sketch_builder import SketchBuilder


def is_epilogue(block: BlockFacts, consumer: BlockFacts) -> bool:
    """Return whether a consumer is elementwise over the block's spatial axes, row by row.

    Indices of axes with one element do not matter: they are the axis or 0.
    """
    spatial = [i for i, a in enumerate(block.axes) if not a.is_reduction]
    extents = [a.extent for a in consumer.axes]
    if consumer.is_reduction or extents != [block.axes[i].extent for i in spatial]:
        return False
    moving = [i for i, extent in enumerate(extents) if extent > 1]
    reads = [r for r in consumer.reads if r.buffer == block.write.buffer]
    return (
        _is_identity(block.write, [spatial[i] for i in moving], moving)
        and all(_is_identity(r, moving, moving) for r in reads)
        and (_is_identity(consumer.write, moving, moving) or consumer.writes_rows)
    )


def _is_identity(access: TensorAccess, axes: Sequence[int], dims: Sequence[int]) -> bool:
    """Return whether each of some axes alone indexes its dimension, and nothing else."""
    columns = [tuple(row[axis] for row in access.coefficients) for axis in axes]
    rank = len(access.coefficients)
    return columns == [tuple(int(d == dim) for d in range(rank)) for dim in dims]


def epilogue_of(draft: SketchBuilder, facts: BlockFacts, memory_scope: str) -> BlockRV:
    """Return the block that reads finished tiles, the only consumer or a new copy.

    Mark it as scheduled.

    Args:
        memory_scope: The memory of the tiles, if a copy reads them.
    """
    schedule, consumer = draft.schedule, elementwise_consumer(draft, facts)
    if consumer is not None:
        block = schedule.get_block(consumer)
    else:
        block = schedule.cache_write(schedule.get_block(facts.name), 0, memory_scope)
    draft.scheduled.add(draft.block_name(block))
    return block


def elementwise_consumer(draft: SketchBuilder, facts: BlockFacts) -> str | None:
    """Return the only reader of a block's output, if it is an elementwise block."""
    consumers = draft.consumers(facts.name)
    consumer = draft.block_facts().get(consumers[0]) if len(consumers) == 1 else None
    if consumer is None or not draft.is_intermediate(facts.name):
        return None
    return consumer.name if is_epilogue(facts, consumer) else None
