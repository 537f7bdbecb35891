"""The rule for spatial blocks that stand alone: vectors inside, threads outside."""

from __future__ import annotations

from compiler.schedule.handle import LoopRV
from tuner.space.block_facts import BlockFacts
from tuner.space.draft import Draft
from tuner.space.nest import NUM_LEVELS, Nest
from tuner.space.streams import offer_streams

MAX_TILE = 64
MAX_VECTORS = 8
_OUTER, _TILE, _VECTOR = 0, 3, 6


class SpatialBlocks:
    """Cuts each axis of a spatial block in two, vectorizes the contiguous one, runs tiles apart.

        for i, j in ...:                for i0, j0 in ...:  # parallel
            B[i, j] = f(A[i, j])   ->       for i1 in ...:
                                                for j1 in ...:  # vectorized
                                                    B[...] = f(A[...])

    Where output and input are contiguous along the same axis, the other axes are left whole:
    tiles would gain nothing.
    """

    def apply(self, draft: Draft) -> list[Draft]:
        """Schedule every spatial block that no other rule did."""
        for name, facts in draft.block_facts().items():
            if name not in draft.scheduled and not facts.is_reduction and facts.axes:
                _schedule(draft, facts)
                if not draft.name:
                    draft.name = ("spatial",)
                    draft.tags |= {"spatial"}
        return [draft]


def _schedule(draft: Draft, facts: BlockFacts) -> None:
    schedule = draft.schedule
    vector = facts.vector_axis
    lanes = max(1, draft.target.vector_bits // (8 * facts.write.item_bytes))
    outer: list[LoopRV] = []
    inner: list[LoopRV] = []
    columns: list[tuple[int | None, ...]] = []
    whole: list[int | None] = []
    for index, (axis, loop) in enumerate(zip(facts.axes, draft.loops(facts.name), strict=True)):
        is_cut = axis.extent > 1 and (vector is None or index == vector)
        if not is_cut:
            outer.append(loop)
            whole.append(_OUTER)
            columns.append((None,) * NUM_LEVELS)
            continue
        limit = MAX_VECTORS * lanes if index == vector else MAX_TILE
        factors, first = draft.tile(loop, axis.extent, 2, limit)
        parts = schedule.split(loop, factors)
        outer.append(parts[0])
        inner.append(parts[1])
        own = {_OUTER: first, (_VECTOR if index == vector else _TILE): first + 1}
        columns.append(tuple(own.get(level) for level in range(NUM_LEVELS)))
        whole.append(None)
    schedule.reorder(*outer, *inner)
    is_cut = vector is not None and facts.axes[vector].extent > 1
    if is_cut:
        schedule.vectorize(inner[-1])
    draft.parallelize(outer)
    draft.nests.append(Nest(facts, tuple(columns), tuple(whole), vector if is_cut else None))
    draft.scheduled.add(facts.name)
    offer_streams(draft, facts)
