"""The rule that places the spatial producers of tiled blocks, such as a convolution's padding."""

from __future__ import annotations

from tuner.space.rules.sketch_builder import SketchBuilder, Tiling


class PlaceProducers:
    """Computes the inputs of a tiled block either before it, or tile by tile.

        for y, x in ...:                  for y0, x0 in ...:
            P[y, x] = pad(A)                  for ay, ax in ...:
        for y0, x0, y1, ... in ...:   ->          P[...] = pad(A)
            C[...] += P[...] * W          for y1, ... in ...:
                                                  C[...] += P[...] * W

    Computed before the block, each element is computed once, but goes through memory. Computed in
    the tile, it stays in the cache, and neighbouring tiles compute their borders twice.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Fork once for each producer."""
        drafts = [draft]
        for tiling in draft.tilings:
            for producer in _producers(draft, tiling):
                drafts = [fork for d in drafts for fork in _placed(d, producer, tiling)]
        return drafts


def _producers(draft: SketchBuilder, tiling: Tiling) -> list[str]:
    """Return the unscheduled spatial blocks whose only consumer is a tiled block."""
    return [
        name
        for name, facts in draft.block_facts().items()
        if name not in draft.scheduled
        and not facts.is_reduction
        and draft.is_intermediate(name)
        and draft.consumers(name) == [tiling.block]
    ]


def _placed(draft: SketchBuilder, producer: str, tiling: Tiling) -> list[SketchBuilder]:
    ahead = draft.fork("ahead", "padded_at_root")
    tiled = draft.fork("tilewise", "padded_at_tile")
    schedule = tiled.schedule
    is_contiguous = draft.block_facts()[producer].vector_axis is not None
    tile_loop = tiled.loops(tiling.block)[tiling.tile_loop]
    block = schedule.get_block(producer)
    schedule.compute_at(block, tile_loop, preserve_unit_loops=True)
    if is_contiguous:
        schedule.vectorize(tiled.loops(block)[-1])
    tiled.scheduled.add(producer)
    return [ahead, tiled]
