"""The rule that moves the initialisation of tiled reductions out of their inner loops."""

from __future__ import annotations

from tuner.space.rules.sketch_builder import SketchBuilder


class DecomposeReductions:
    """Initialises each output tile before its reduction. Runs last, because it renames blocks.

    for i0, ...:                        for i0, ...:
        for k0, i2, k1, ...:                for i2, i3, j3 in ...:
            if k == 0: C[...] = 0    ->         C[...] = 0
            C[...] += ...                   for k0, i2, k1, ...:
                                                C[...] += ...
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Decompose every tiled reduction."""
        for tiling in draft.tilings:
            block = draft.schedule.get_block(tiling.block)
            loop = draft.loops(block)[tiling.reduction_loop]
            draft.schedule.decompose_reduction(block, loop)
        return [draft]
