"""The tile of a sum of products: its axes by their part."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.operand_copies import NUM_THREAD_AXES

MIN_STEPS = 8
"""A shorter sum ends before shared memory pays for its barriers. Chosen."""


@dataclass(frozen=True)
class ProductTile:
    """A sum of products, and its axes by their part.

    Attributes:
        rows: The longest spatial axes that an operand does not have, but for the column.
        column: The spatial axis along which the output is contiguous, or nearly so.
        batch: The other spatial axes: a block computes one element of them.
    """

    facts: BlockFacts
    rows: tuple[int, ...]
    column: int
    batch: tuple[int, ...]

    @property
    def tiled(self) -> tuple[int, ...]:
        """Return the axes whose tiles threads compute; the column is the last one."""
        return (*self.rows, self.column)

    @property
    def steps(self) -> list[int]:
        """Return the axes that are summed over."""
        return [index for index, axis in enumerate(self.facts.axes) if axis.is_reduction]


def find_tile(facts: BlockFacts) -> ProductTile | None:
    """Return the axes of a sum of products of operands that neighbours share; else None."""
    axes = facts.axes
    length = prod(axis.extent for axis in axes if axis.is_reduction)
    if not facts.is_reduction or not facts.is_affine or len(facts.reads) < 2 or length < MIN_STEPS:
        return None
    spatial = [index for index, axis in enumerate(axes) if not axis.is_reduction]
    operands = [frozenset(i for i in spatial if read.strides[i]) for read in facts.reads]
    tiled = [i for i in spatial if axes[i].extent > 1 and any(i not in o for o in operands)]
    if not any((a - b) & set(tiled) and (b - a) & set(tiled) for a in operands for b in operands):
        return None
    column = min(tiled, key=lambda index: facts.write.strides[index])
    others = sorted((i for i in tiled if i != column), key=lambda i: -axes[i].extent)
    rows = tuple(sorted(others[: NUM_THREAD_AXES - 1]))
    batch = tuple(index for index in spatial if index not in (*rows, column))
    return ProductTile(facts, rows, column, batch)
