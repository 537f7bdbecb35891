"""Loads of vectors by reductions: a thread adds up neighbours that it loads at once."""

from __future__ import annotations

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import BlockRealize
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.rules.sketch_builder import SketchBuilder


def load_vectors(draft: SketchBuilder, block: BlockRV, thread: LoopRV) -> None:
    """Load what a block reduces into registers, one vector at a time.

    for t in ...:  # threadIdx.x                for t in ...:  # threadIdx.x
        for v in ...:                     ->        for v in ...:  # vectorized
            S[i] += A[i, t * 4 + v]                     A_local[v] = A[i, t * 4 + v]
                                                    for v in ...:
                                                        S[i] += A_local[v]

    Args:
        thread: The loop over threads, around the loop over the elements of a vector.
    """
    schedule = draft.schedule
    for index in _varying_reads(draft, block):
        load = schedule.cache_read(block, index, "local", consumer_blocks=[block])
        schedule.compute_at(load, thread, preserve_unit_loops=True)
        schedule.vectorize(draft.loops(load)[-1])
        draft.scheduled.add(draft.block_name(load))


def _varying_reads(draft: SketchBuilder, block: BlockRV) -> list[int]:
    """Return the positions of the operands that change along a reduction."""
    realize = draft.schedule.get(block)
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    steps = {i.var for i in realize.block.iter_vars if i.kind == "reduce"}
    return [
        index
        for index, region in enumerate(realize.block.reads)
        if any(not steps.isdisjoint(variables(span.minimum)) for span in region.region)
    ]
