"""Copies of operands of tensor cores into shared memory, by all lanes of a block."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.schedule.trace.handle import BlockRV, ExprRV
from tuner.space.rules.sketch_builder import SketchBuilder

VECTOR_BYTES = 16
"""Bytes that a lane copies at once, of contiguous elements."""


def share_copy(
    draft: SketchBuilder, copy: BlockRV, rank: int, parts: Sequence[ExprRV | int]
) -> None:
    """Share a copy into shared memory among the warps and lanes of a block.

    Args:
        copy: The block that copies.
        rank: The dimensions of the operand, whose loops are the innermost ones of the block.
        parts: The warps along `threadIdx.z` and `threadIdx.y`, the lanes, and the elements of a
            lane's vector.
    """
    schedule = draft.schedule
    fused = schedule.fuse(*draft.loops(copy)[-rank:])
    _, warp_i, warp_j, lane, vector = schedule.split(fused, [None, *parts])
    schedule.vectorize(vector)
    schedule.bind(warp_i, "threadIdx.z")
    schedule.bind(warp_j, "threadIdx.y")
    schedule.bind(lane, "threadIdx.x")
