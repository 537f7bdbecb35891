"""Chains of row reductions and elementwise steps, such as softmax and layer norm."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.analysis.row_axes import RowAxes, row_axes
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_LANES = 8
"""Lanes that a reduction requires: shorter vectors do not pay for the final sum over lanes. Chosen.
"""


@dataclass(frozen=True)
class RowChain:
    """The blocks of a chain, the sink last, and the facts about its rows."""

    blocks: list[BlockFacts]
    rows: RowAxes
    is_across: bool

    def inner(self, block: BlockFacts) -> list[int]:
        """Return the axes of a block that do not run over rows."""
        row_axes_of_block = self.rows.of.get(block.name, ())
        return [index for index in range(len(block.axes)) if index not in row_axes_of_block]


def find_row_chain(draft: SketchBuilder) -> RowChain | None:
    """Return the chain that the whole program is; None if it is none."""
    facts = list(draft.block_facts().values())
    if not facts or len(facts) < len(sites(draft.schedule.func)) or draft.scheduled:
        return None
    if any(b.is_conditional for b in facts) or draft.is_intermediate(facts[-1].name):
        return None
    if any(not draft.is_intermediate(b.name) for b in facts[:-1]):
        return None
    rows = row_axes(facts)
    blocks = [b for b in facts if b.name in rows.of] or facts
    reductions = [b for b in blocks if b.is_reduction]
    chain = RowChain(blocks, rows, is_across=False)
    if not reductions or any(_has_inner_axes(chain, b) or _is_product(b) for b in reductions):
        return None
    if all(suits_lanes(b) for b in reductions):
        return chain
    is_across = all([b.vector_axis] == list(rows.of.get(b.name, ())[-1:]) for b in reductions)
    passes = [b for b in blocks if chain.inner(b)]
    return replace(chain, is_across=True) if is_across and len(passes) > 1 else None


def suits_lanes(block: BlockFacts) -> bool:
    """Return whether a reduction has enough contiguous elements to fill a vector."""
    axis = block.lane_axis
    if axis is None:
        return False
    outer = block.axes[axis - 1] if axis else None
    is_long = outer is not None and outer.is_reduction and block.runs_on(axis - 1, axis)
    return is_long or block.axes[axis].extent >= MIN_LANES


def _has_inner_axes(chain: RowChain, block: BlockFacts) -> bool:
    """Return whether a reduction has several results in each row, as a matrix product does."""
    inner = chain.inner(block)
    return any(block.axes[i].extent > 1 and not block.axes[i].is_reduction for i in inner)


def _is_product(block: BlockFacts) -> bool:
    """Return whether operands are reused along several spatial axes, as those of a matrix product.

    Tiles of both axes would read them less often than rows do.
    """
    axes = [i for i, a in enumerate(block.axes) if not a.is_reduction and a.extent > 1]
    reused = [{axis for axis in axes if not read.strides[axis]} for read in block.reads]
    return sum(map(bool, reused)) > 1 and len(set().union(*reused)) > 1
