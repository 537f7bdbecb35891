"""The rule for what is read along one axis and written along another, such as transposes."""

from __future__ import annotations

from compiler.schedule.handle import LoopRV
from compiler.schedule.sample import divisors
from tuner.space.block_facts import BlockFacts
from tuner.space.draft import Draft
from tuner.space.nest import LINE_BYTES, NUM_LEVELS, Nest
from tuner.space.streams import offer_streams

MAX_COLUMNS = 16
"""Rows of a tile; it is written in columns of so many elements."""
_OUTER, _BLOCK, _REGISTERS = 0, 3, 6


class TransposedCopies:
    """Tiles such a block so that registers transpose, and whole cache lines are read and written.

        for i, j in ...:             for j0, i0 in ...:  # parallel
            B[i, j] = A[j, i]   ->       for j1, i1 in ...:
                                             for j2 in range(16):  # unrolled
                                                 for i2 in range(8):  # vectorized
                                                     B[...] = A[...]

    The blocks of `i0` are as long as a cache line.
    """

    def apply(self, draft: Draft) -> list[Draft]:
        """Schedule each such block."""
        for name, facts in draft.block_facts().items():
            axes = _axes(facts)
            if name not in draft.scheduled and axes is not None:
                _schedule(draft, facts, *axes)
                if not draft.name:
                    draft.name = ("transposed",)
                    draft.tags |= {"spatial"}
        return [draft]


def _axes(facts: BlockFacts) -> tuple[int, int] | None:
    """Return the axes along which a block reads and writes what is contiguous, if they differ."""
    if facts.is_reduction or facts.is_conditional or not facts.is_affine or not facts.reads:
        return None
    long = [index for index, axis in enumerate(facts.axes) if axis.extent > 1]
    read = [index for index in long if facts.reads[0].strides[index] == 1]
    written = [index for index in long if facts.write.strides[index] == 1]
    if len(read) != 1 or len(written) != 1 or read == written:
        return None
    return read[0], written[0]


def _schedule(draft: Draft, facts: BlockFacts, read: int, written: int) -> None:
    schedule = draft.schedule
    loops = draft.loops(facts.name)
    extent, item_bytes = facts.axes[read].extent, facts.write.item_bytes
    lanes = _divisor(extent, max(1, draft.target.vector_bits // (8 * item_bytes)))
    line = _divisor(extent // lanes, max(1, LINE_BYTES // item_bytes // lanes))
    i0, i1, i2 = schedule.split(loops[read], [None, line, lanes])
    factors, first = draft.tile(loops[written], facts.axes[written].extent, 3, MAX_COLUMNS)
    j0, j1, j2 = schedule.split(loops[written], factors)
    around: list[LoopRV] = [
        *(loop for index, loop in enumerate(loops) if index not in (read, written)),
        j0,
        i0,
    ]
    schedule.reorder(*around, j1, i1, j2, i2)
    schedule.unroll(j2)
    schedule.vectorize(i2)
    draft.parallelize(around)
    columns: list[tuple[int | None, ...]] = [(None,) * NUM_LEVELS for _ in facts.axes]
    own = {_OUTER: first, _BLOCK: first + 1, _REGISTERS: first + 2}
    columns[written] = tuple(own.get(level) for level in range(NUM_LEVELS))
    whole = [_OUTER if index != written else None for index in range(len(facts.axes))]
    whole[read] = _OUTER
    draft.nests.append(Nest(facts, tuple(columns), tuple(whole), None))
    draft.scheduled.add(facts.name)
    offer_streams(draft, facts)


def _divisor(extent: int, most: int) -> int:
    return max(d for d in divisors(extent) if d <= most)
