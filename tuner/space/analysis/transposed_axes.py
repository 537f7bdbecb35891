"""Find the axes of blocks that read along one axis and write along another."""

from __future__ import annotations

from tuner.space.analysis.block_facts import BlockFacts


def transposed_axes(facts: BlockFacts) -> tuple[int, int] | None:
    """Return the axes along which reads and writes are contiguous, if they differ."""
    if facts.is_reduction or facts.is_conditional or not facts.is_affine or not facts.reads:
        return None
    long = [index for index, axis in enumerate(facts.axes) if axis.extent > 1]
    read = [index for index in long if facts.reads[0].strides[index] == 1]
    written = [index for index in long if facts.write.strides[index] == 1]
    if len(read) != 1 or len(written) != 1 or read == written:
        return None
    return read[0], written[0]
