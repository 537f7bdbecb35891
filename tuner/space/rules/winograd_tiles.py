"""The rule for convolutions of 3 x 3 windows: Winograd's tiles as a further sketch."""

from __future__ import annotations

from compiler.ir.core.nodes import BlockRealize
from compiler.schedule.error import ScheduleError
from compiler.schedule.rewrite.window_convolution import window_convolution
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.sketch_builder import SketchBuilder

WINOGRAD = "winograd"
"""The tag of sketches with such tiles."""

TILES = (4, 2)
"""The numbers of outputs of a tile in each dimension. Tiles of 4 need fewer multiplications, but
have larger rounding errors and weights."""

MIN_CHANNELS = 16
"""Least number of input and of output channels. With fewer, the transforms take longer than the
multiplications that they save: each element of an image has 4 to 9 additions for each dimension."""


class WinogradTiles:
    """Computes convolutions by tiles of 2 x 2 and of 4 x 4 outputs, one sketch each.

    The primitive `winograd` refuses tiles whose rounding error exceeds the error budget of the
    program. Later rules schedule the transforms and the products.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Return the draft, and forks in which all suitable convolutions are tiled."""
        names = [name for name in draft.block_facts() if _is_candidate(draft, name)]
        forks = [_tiled(draft, names, tile) for tile in TILES] if names else []
        return [draft, *(fork for fork in forks if fork is not None)]


def _is_candidate(draft: SketchBuilder, name: str) -> bool:
    """Return whether a block is a convolution with enough channels."""
    realize = draft.schedule.get(draft.schedule.get_block(name))
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    convolution = None if name in draft.scheduled else window_convolution(realize.block)
    if convolution is None:
        return False
    return min(convolution.extents["c"], convolution.extents["o"]) >= MIN_CHANNELS


def _tiled(draft: SketchBuilder, names: list[str], tile: int) -> SketchBuilder | None:
    """Return a fork in which convolutions are tiled; None if none of them can be."""
    fork = draft.fork(f"winograd_{tile}", WINOGRAD)
    copies = [_tile(fork, name, tile) for name in names]
    if not any(copies):
        return None
    facts = fork.block_facts()
    transposing = {n for names in copies for n in names if facts[n].vector_axis is None}
    AutoInline(transposing).apply(fork)
    return fork


def _tile(draft: SketchBuilder, name: str, tile: int) -> tuple[str, ...]:
    """Tile a convolution, with its padding in the copy of the image.

    Returns:
        The names of the blocks that copy the image, the weights and the result to another layout;
        none if the convolution is not tiled.
    """
    schedule = draft.schedule
    try:
        image, _, _, weights, *_ = schedule.winograd(schedule.get_block(name), tile)
    except ScheduleError:
        return ()
    for producer in schedule.get_producers(image):
        padding = draft.block_name(producer)
        facts = draft.block_facts().get(padding)
        is_padding = facts is not None and facts.is_conditional and not facts.flops_per_point
        if is_padding and draft.consumers(padding) == [draft.block_name(image)]:
            schedule.compute_inline(producer)
    return draft.block_name(image), draft.block_name(weights), name
