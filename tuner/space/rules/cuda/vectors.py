"""The lengths of vectors that the threads of a GPU load and store."""

from __future__ import annotations

from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.sketch_builder import SketchBuilder

_LENGTHS = (8, 4, 2, 1)


def vector_lengths(draft: SketchBuilder, facts: BlockFacts, axis: int) -> list[int]:
    """Return the lengths of vectors along an axis that are aligned everywhere, the longest first.

    A vector does not cross the end of a row, so the lengths divide the extent. It is contiguous in
    the output, and in each input contiguous or a single element.
    """
    accesses = (facts.write, *facts.reads)
    is_contiguous = (
        facts.is_affine
        and not facts.is_conditional
        and facts.write.strides[axis] == 1
        and all(read.strides[axis] in (0, 1) for read in facts.reads)
    )
    if not is_contiguous:
        return [1]
    extent = facts.axes[axis].extent
    return [
        n
        for n in _possible_lengths(draft, facts)
        if extent % n == 0 and all(_is_aligned(a, axis, n) for a in accesses)
    ]


def flat_vector_lengths(draft: SketchBuilder, facts: BlockFacts) -> list[int]:
    """Return the lengths of vectors along all axes of a block together, the longest first.

    They cross the ends of rows, so the block writes and reads all elements in the order of its
    loops. Only the last vector may be incomplete.
    """
    accesses = (facts.write, *facts.reads)
    is_in_order = (
        facts.is_affine
        and not facts.is_conditional
        and not facts.is_reduction
        and all(access.strides[-1] == 1 for access in accesses)
        and all(facts.runs_on(axis - 1, axis) for axis in range(1, len(facts.axes)))
        and facts.points > max(_LENGTHS)
    )
    return _possible_lengths(draft, facts) if is_in_order else [1]


def _possible_lengths(draft: SketchBuilder, facts: BlockFacts) -> list[int]:
    """Return the lengths of vectors that one instruction may access."""
    item_bytes = max(access.item_bytes for access in (facts.write, *facts.reads))
    longest = draft.gpu.limits.max_vector_bytes // item_bytes
    return [n for n in _LENGTHS if n <= longest]


def _is_aligned(access: TensorAccess, axis: int, length: int) -> bool:
    """Return whether vectors along an axis begin at multiples of their length."""
    others = (stride for index, stride in enumerate(access.strides) if index != axis)
    return access.strides[axis] == 0 or all(stride % length == 0 for stride in others)
