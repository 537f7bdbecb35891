"""Chains of products on GPUs: the rows of a block of threads, from the operands to the results."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.product_chain import ProductChain, find_product_chain
from tuner.space.rules.sketch_builder import SketchBuilder

PADDING_BYTES = 16
"""Padding of a row in shared memory: rows begin in different banks, and vectors stay aligned."""
_BANK_BYTES = 128


def find_nested_chain(draft: SketchBuilder) -> ProductChain | None:
    """Return the chain of two products or more that a program is, if its rows are outermost."""
    chain = find_product_chain(draft, has_epilogue=True)
    if chain is None or len(chain.tiled) < 2 or not chain.is_nested:
        return None
    return chain


def row_axis(chain: ProductChain) -> int:
    """Return the axis of all blocks that is cut into tiles of rows."""
    return chain.rows.of[chain.sink.name][-1]


def max_rows(draft: SketchBuilder, chain: ProductChain, piece_bytes: int) -> int:
    """Return how many rows of results fit the shared memory of a block.

    Two results of whole rows are in use at once, or one of them and pieces of operands.

    Args:
        piece_bytes: The size of these pieces.
    """
    lengths = [
        block.axes[1 + row_axis(chain)].extent * block.write.item_bytes + PADDING_BYTES
        for block in chain.blocks[:-1]
        if block.name in chain.tiled or not block.is_reduction
    ]
    limit, row_bytes = draft.gpu.limits.shared_bytes, max(lengths)
    return min(limit // (2 * row_bytes), (limit - piece_bytes) // row_bytes)


def place_rows(
    draft: SketchBuilder, chain: ProductChain, epilogues: Mapping[str, BlockRV], at: LoopRV
) -> list[tuple[BlockFacts, BlockRV]]:
    """Compute the rows of all blocks but the last one in a loop over tiles of rows.

    Args:
        epilogues: The block that reads the sums of a product from registers, by the product.
        at: The loop.

    Returns:
        The facts of each block, and the block; for a product its epilogue.
    """
    taken = {draft.block_name(epilogue) for epilogue in epilogues.values()}
    placed = [
        (block, epilogues.get(block.name) or draft.schedule.get_block(block.name))
        for block in chain.blocks[:-1]
        if block.name not in taken
    ]
    for _, handle in reversed(placed):
        draft.schedule.compute_at(handle, at, preserve_unit_loops=True)
        draft.schedule.set_scope(handle, 0, "shared")
    return placed


def pad_rows(
    draft: SketchBuilder, block: BlockRV, item_bytes: int, padding_bytes: int = PADDING_BYTES
) -> None:
    """Pad the rows of a block's results in shared memory."""
    factor, offset = _BANK_BYTES // item_bytes, padding_bytes // item_bytes
    draft.schedule.storage_align(block, 0, -2, factor, offset)


def operands(draft: SketchBuilder, block: BlockFacts) -> list[TensorAccess]:
    """Return the operands of a block that are parameters of the program."""
    parameters = {buffer.name for buffer in draft.func.buffers}
    return [read for read in block.reads if read.buffer in parameters]
