"""The blocks of a softmax in blocks of keys, shared among threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.rules.cuda.chain_rows import pad_rows
from tuner.space.rules.online_blocks import OnlineBlocks
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder


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
