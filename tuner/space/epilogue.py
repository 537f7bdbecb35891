"""Which blocks may take up the output of another tile by tile."""

from __future__ import annotations

from tuner.space.block_facts import BlockFacts


def is_epilogue(block: BlockFacts, consumer: BlockFacts) -> bool:
    """Tell whether the consumer runs over the block's spatial axes and reads point by point."""
    spatial = [a.extent for a in block.axes if not a.is_reduction]
    own = [a.extent for a in consumer.axes]
    count = len(own)
    identity = tuple(tuple(int(i == j) for j in range(count)) for i in range(count))
    output = block.write
    reads = [r for r in consumer.reads if r.buffer == output.buffer]
    in_order = [row for row in zip(*output.coefficients, strict=True) if any(row)]
    return (
        not consumer.is_reduction
        and own == spatial
        and list(in_order) == list(identity)
        and all(r.coefficients == identity for r in reads)
        and consumer.write.coefficients == identity
    )
