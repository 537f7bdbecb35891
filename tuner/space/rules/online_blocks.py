"""The softmax of a chain of products in blocks of keys: its blocks."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder

SOFTMAX_BLOCKS = 4
"""The maximum, the powers, the total and the weights."""


def is_one_softmax(chain: ProductChain) -> bool:
    """Return whether a chain is two products with one softmax between them, and may be online.

    An elementwise block may follow the first product.
    """
    first, *_, last = chain.blocks
    between = len(chain.blocks) - 2 - SOFTMAX_BLOCKS
    return chain.products == [first, last] and between in (0, 1)


@dataclass(frozen=True)
class OnlineBlocks:
    """The blocks of a softmax in the loop over keys of its last product.

    Attributes:
        start: Starts the weighted sum.
        numbers: Compute a number of each row: the start of the maximum and of the total, the
            factor, the maximum and the total.
        of_maxima: Computes the maximum of a block of keys.
        of_totals: Computes the total of a block of keys.
        powers: Computes the powers.
        weights: Converts the powers.
        scale: Scales the weighted sum by the factor.
        divide: Divides it by the total.
    """

    start: BlockRV
    numbers: tuple[BlockRV, ...]
    of_maxima: BlockRV
    of_totals: BlockRV
    powers: BlockRV
    weights: BlockRV
    scale: BlockRV
    divide: BlockRV

    @classmethod
    def merged(cls, draft: SketchBuilder, chain: ProductChain, loop: LoopRV) -> OnlineBlocks:
        """Compute the softmax of a chain in a loop over blocks of keys."""
        schedule = draft.schedule
        new = schedule.online_softmax(chain.sink.name, loop)
        start, maximum_start, total_start, of_maxima, factor, of_totals, scale, divide = new
        maximum, powers, total, weights = (
            schedule.get_block(block.name) for block in chain.blocks[-1 - SOFTMAX_BLOCKS : -1]
        )
        numbers = (maximum_start, total_start, factor, maximum, total)
        draft.scheduled |= {draft.block_name(block) for block in new}
        return cls(start, numbers, of_maxima, of_totals, powers, weights, scale, divide)
