"""Epilogues: consumers of a block's output that run on each finished tile."""

from __future__ import annotations

from compiler.schedule.trace.handle import BlockRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.sketch_builder import SketchBuilder


def is_epilogue(block: BlockFacts, consumer: BlockFacts) -> bool:
    """Return whether a consumer is elementwise over the block's spatial axes, row by row."""
    spatial = [a.extent for a in block.axes if not a.is_reduction]
    extents = [a.extent for a in consumer.axes]
    count = len(extents)
    identity = tuple(tuple(int(i == j) for j in range(count)) for i in range(count))
    output = block.write
    reads = [r for r in consumer.reads if r.buffer == output.buffer]
    in_order = [row for row in zip(*output.coefficients, strict=True) if any(row)]
    return (
        not consumer.is_reduction
        and extents == spatial
        and list(in_order) == list(identity)
        and all(r.coefficients == identity for r in reads)
        and (consumer.write.coefficients == identity or _joins_rows(consumer))
    )


def _joins_rows(consumer: BlockFacts) -> bool:
    """Return whether a block writes contiguous rows, whose other axes may share dimensions."""
    return consumer.write.is_affine and bool(consumer.axes) and consumer.write.strides[-1] == 1


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
