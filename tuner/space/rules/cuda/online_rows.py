"""The softmax of a chain of products in blocks of keys: its blocks, shared among threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.rules.cuda.chain_rows import pad_rows
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


@dataclass
class OnlineRows:
    """Merges the softmax of a chain into the loop over keys of its last product.

    Attributes:
        draft: The draft.
        chain: The chain; its rows are outermost.
        threads: The numbers of threads along each axis. Those along the last one share the keys of
            a row, the others share the rows.
        bound: The loops to bind to these axes, of each block.
    """

    draft: SketchBuilder
    chain: ProductChain
    threads: Sequence[ExprRV | int]
    bound: list[tuple[LoopRV, ...]] = field(default_factory=list)

    def merge(self, loop: LoopRV) -> tuple[BlockRV, BlockRV, BlockRV]:
        """Compute the softmax in a loop over blocks of keys, and share its blocks.

        Values that threads pass on, one for each row, are in shared memory, as are the weights. A
        thread keeps the powers that it adds up and converts.

        Returns:
            The blocks that start, scale and divide the weighted sum.
        """
        schedule = self.draft.schedule
        blocks = OnlineBlocks.merged(self.draft, self.chain, loop)
        for block in (*blocks.numbers, blocks.of_maxima, blocks.of_totals, blocks.weights):
            schedule.set_scope(block, 0, "shared")
        schedule.set_scope(blocks.powers, 0, "local")
        for block in blocks.numbers:
            self._share_rows(block)
        for block in (blocks.of_maxima, blocks.powers, blocks.of_totals, blocks.weights):
            self._share_elements(block)
        pad_rows(self.draft, blocks.weights, self.chain.blocks[-2].write.item_bytes)
        return blocks.start, blocks.scale, blocks.divide

    def bind(self) -> None:
        """Bind the loops of all blocks to threads."""
        axes = "zyx"[-len(self.threads) :]
        for loops in self.bound:
            for loop, axis in zip(loops, axes, strict=False):
                self.draft.schedule.bind(loop, f"threadIdx.{axis}")

    def _share_rows(self, block: BlockRV) -> None:
        schedule = self.draft.schedule
        _, *loops = schedule.split(self.draft.loops(block)[-1], [None, *self.threads])
        self.bound.append(tuple(loops))

    def _share_elements(self, block: BlockRV) -> None:
        schedule = self.draft.schedule
        *_, row, column = self.draft.loops(block)
        *of_rows, item = schedule.split(row, [*self.threads[:-1], None])
        step, lane = schedule.split(column, [None, self.threads[-1]])
        schedule.reorder(*of_rows, item, step, lane)
        self.bound.append((*of_rows, lane))
