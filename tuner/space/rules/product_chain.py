"""Chains of matrix products, with row reductions and elementwise steps between them."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.analysis.row_axes import RowAxes, row_axes
from tuner.space.rules.epilogue import is_epilogue
from tuner.space.rules.sketch_builder import SketchBuilder


@dataclass(frozen=True)
class ProductChain:
    """The blocks of a chain, the sink last; `tiled` holds its products, with their axes.

    The axes of a product are its column and the axis that it sums over. The epilogue reads the
    finished results of the sink.
    """

    blocks: list[BlockFacts]
    rows: RowAxes
    tiled: dict[str, tuple[int, int]]
    epilogue: BlockFacts | None = None

    @property
    def sink(self) -> BlockFacts:
        """Return the last block, which is a product."""
        return self.blocks[-1]

    @property
    def products(self) -> list[BlockFacts]:
        """Return the products in program order."""
        return [block for block in self.blocks if block.name in self.tiled]

    @property
    def is_nested(self) -> bool:
        """Return whether rows are the outermost axes of all blocks, and sums the innermost."""
        rows = tuple(range(len(self.rows.of[self.sink.name])))
        for block in self.blocks:
            last = len(block.axes) - 1
            is_in_order = self.rows.of[block.name] == rows and self.inner(block)
            if not is_in_order or self.tiled.get(block.name, (last - 1, last)) != (last - 1, last):
                return False
        return True

    def inner(self, block: BlockFacts) -> list[int]:
        """Return the axes of a block that do not run over rows."""
        return [i for i in range(len(block.axes)) if i not in self.rows.of[block.name]]


def find_product_chain(
    draft: SketchBuilder, *, has_epilogue: bool = False, has_dot_products: bool = False
) -> ProductChain | None:
    """Return the chain that the whole program is; None if it is none.

    Args:
        has_epilogue: Whether an elementwise block may follow the last product, such as a cast.
        has_dot_products: Whether products may have operands of a single row, so that each result
            is a dot product in memory and nothing is reused along columns.
    """
    blocks = list(draft.block_facts().values())
    if len(blocks) < len(sites(draft.schedule.func)) or len(blocks) < 2 or draft.scheduled:
        return None
    intermediate = [draft.is_intermediate(block.name) for block in blocks]
    if intermediate != [True] * (len(blocks) - 1) + [False]:
        return None
    epilogue = None
    if has_epilogue and is_epilogue(blocks[-2], blocks[-1]):
        epilogue = blocks.pop()
    rows = row_axes(blocks)
    if len(rows.of) < len(blocks) or not rows.of[rows.sink]:
        return None
    tiled: dict[str, tuple[int, int]] = {}
    others = 0
    for block in blocks:
        row_axes_of_block = rows.of[block.name]
        if not block.is_reduction:
            continue
        inner = [i for i, axis in enumerate(block.axes) if i not in row_axes_of_block]
        spatial = [i for i in inner if not block.axes[i].is_reduction]
        sums = [i for i in inner if block.axes[i].is_reduction]
        is_dot_product = has_dot_products and block.lane_axis in sums
        if not spatial and block.lane_axis is not None:
            others += 1
        elif len(spatial) == len(sums) == 1 and (block.vector_axis == spatial[0] or is_dot_product):
            tiled[block.name] = (spatial[0], sums[0])
        else:
            return None
    is_product = rows.sink in tiled and len(tiled) + others > 1
    return ProductChain(blocks, rows, tiled, epilogue) if is_product else None
