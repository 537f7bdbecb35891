"""The rule for windows that slide without summing over channels: depthwise sums and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler import te
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cpu.padded_tiles import has_no_tile, padded_sizes, padded_tiles
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_STEPS = 64
"""Maximum number of elements of a window, such as 8 x 8. All are unrolled, so it bounds the length
of the code. Chosen.
"""
MAX_ROWS = 8
"""Rows of a tile, which share loads of the image. A core adds in 8 chains at once: on a Zen 5, 7
rows of 14 elements take 0.7 of the time of 2.
"""
MAX_VECTORS = 8
"""Vectors of a row of a tile: half of the vector registers of AVX2. Chosen."""
_OUTER, _MIDDLE, _UNROLLED, _TILE = 0, 1, 5, 6


@dataclass(frozen=True)
class _Window:
    """A sliding window: the image, the axes along and across its rows, and the step along them."""

    image: TensorAccess
    row: int
    column: int
    stride: int


class WindowRows:
    """Computes windows over a few rows of an image at a time, in vectors along the rows.

    The image is padded for the rows of one tile at a time, which stay in the first-level cache. If
    the stride is above 1, the elements of a row are grouped by their index modulo the stride
    (polyphase decomposition). So vectors are contiguous at every step.

        for c, y0 in ...:  # parallel
            P[y, r, x] = A[c, y, x * 2 + r]     # rows of the tile
            for y1, x0 in ...:
                for ry, rx, y2 in ...:  # unrolled
                    for x1 in ...:  # vectorized
                        T[y2, x1] += P[y + ry, rx % 2, x + rx // 2] * W[c, ry, rx]
                C[...] = T[...]
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Fork for the first block of this form."""
        for name, facts in draft.block_facts().items():
            window = _window(facts)
            if window is None or name in draft.scheduled:
                continue
            rows = draft.fork("rows", "window_rows")
            try:
                _slide(rows, facts, window)
            except ScheduleError:
                return [draft]  # the program has other schedules
            return [rows, draft]
        return [draft]


def _window(facts: BlockFacts) -> _Window | None:
    steps = [i for i, axis in enumerate(facts.axes) if axis.is_reduction]
    spatial = [i for i, axis in enumerate(facts.axes) if not axis.is_reduction]
    if not facts.is_affine or not steps or len(spatial) < 2 or not facts.reads:
        return None
    if prod(facts.axes[i].extent for i in steps) > MAX_STEPS:
        return None
    column, row = spatial[-1], spatial[-2]
    for image in facts.reads:
        slides = [sum(map(bool, r)) > 1 for r in image.coefficients]
        pairs = zip(image.coefficients, slides, strict=True)
        moved = {i for r, is_slid in pairs if is_slid for i in steps if r[i]}
        last = image.coefficients[-1]
        is_row = facts.write.strides[column] == 1 and slides[-1] and last[column] > 0
        if is_row and moved == set(steps):
            return _Window(image, row, column, last[column])
    return None


def _slide(draft: SketchBuilder, facts: BlockFacts, window: _Window) -> None:
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    maker = _maker(draft, facts.name, window)
    if maker is not None and window.stride > 1 and window.image.shape[-1] % window.stride == 0:
        _take_apart(draft, maker, window)
    epilogue = epilogue_of(draft, facts, "local")
    outer, middle = _tile(draft, facts, window, block, epilogue, is_copied=maker is not None)
    if maker is not None:
        handle = schedule.get_block(maker)
        rank = len(draft.loops(handle))
        schedule.compute_at(handle, outer[-1], preserve_unit_loops=True)
        loops = draft.loops(handle)[-rank:]
        if window.stride > 1 and rank > len(window.image.shape):
            schedule.unroll(loops[-2])
        schedule.vectorize(loops[-1])
        draft.scheduled.add(maker)
    count = draft.parallelize(outer)
    draft.tilings.append(Tiling(facts.name, count - 1, count + len(middle)))


def _maker(draft: SketchBuilder, name: str, window: _Window) -> str | None:
    """Return the block that produces the image for this block alone; with a stride, a new copy."""
    for maker, facts in draft.block_facts().items():
        if facts.write.buffer == window.image.buffer and not facts.is_reduction:
            is_own = draft.consumers(maker) == [name] and maker not in draft.scheduled
            if is_own and draft.is_intermediate(maker):
                return maker
    if window.stride == 1:
        return None
    schedule = draft.schedule
    copy = schedule.cache_read(schedule.get_block(name), window.image.buffer, "global")
    return draft.block_name(copy)


def _take_apart(draft: SketchBuilder, maker: str, window: _Window) -> None:
    """Group the elements of a row by their index modulo the stride, aligned to vectors."""
    schedule, step = draft.schedule, window.stride
    last = len(window.image.shape) - 1

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return (*i[:last], i[last] % step, i[last] // step)

    block = schedule.get_block(maker)
    schedule.transform_layout(block, ("write", 0), layout)
    schedule.transform_block_layout(block, layout)
    lanes = draft.cpu.vector_bits // (8 * window.image.item_bytes)
    if lanes > 1:
        schedule.storage_align(block, 0, last, lanes, 0)


def _tile(
    draft: SketchBuilder,
    facts: BlockFacts,
    window: _Window,
    block: BlockRV,
    epilogue: BlockRV,
    *,
    is_copied: bool,
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Tile the block; return the loops around a tile of rows, and those inside.

    Args:
        is_copied: Whether the rows of the image are in a copy, which may have longer rows.
    """
    schedule = draft.schedule
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    limits = {window.row: (3, MAX_ROWS), window.column: (2, MAX_VECTORS * lanes)}
    levels: dict[int, list[LoopRV]] = {_OUTER: [], _MIDDLE: [], _UNROLLED: [], _TILE: []}
    columns: list[tuple[int | None, ...]] = []
    remainder_levels: list[int | None] = []
    for index, (axis, loop) in enumerate(zip(facts.axes, draft.loops(block), strict=True)):
        if index not in limits:
            level = _UNROLLED if axis.is_reduction else _OUTER
            levels[level].append(loop)
            columns.append((None,) * NUM_LEVELS)
            remainder_levels.append(level)
            continue
        parts, limit = limits[index]
        used = (_OUTER, _MIDDLE, _TILE)[-parts:]
        sizes = _padded_sizes(axis.extent, lanes if index == window.column else 0)
        if not sizes:
            factors, first = draft.tile(loop, axis.extent, parts, limit)
            part_loops = schedule.split(loop, factors)
            axis_columns = {level: first + n for n, level in enumerate(used)}
        elif index == window.column:
            size, first = draft.cut(axis.extent, padded_sizes(axis.extent, sizes))
            part_loops = schedule.split(loop, [None, size])
            axis_columns = {_MIDDLE: first, _TILE: first + 1}
        else:
            inner, inner_columns = padded_tiles(draft, axis.extent, sizes)
            part_loops = schedule.split(loop, [None, *inner])
            axis_columns = dict(zip(used[1:], inner_columns, strict=True))
        for level, part_loop in zip(used, part_loops, strict=True):
            levels[level].append(part_loop)
        columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
        remainder_levels.append(None if used[0] in axis_columns else used[0])
    schedule.reorder(*(loop for level in levels.values() for loop in level))
    schedule.reverse_compute_at(epilogue, levels[_MIDDLE][-1], preserve_unit_loops=True)
    loops = draft.loops(epilogue)[-2:]
    for loop in (*levels[_UNROLLED], levels[_TILE][0], loops[0]):
        schedule.unroll(loop)
    for loop in (levels[_TILE][-1], loops[-1]):
        schedule.vectorize(loop)
    draft.nests.append(
        TiledNest(
            facts, tuple(columns), tuple(remainder_levels), window.column, fills_rows=is_copied
        )
    )
    draft.scheduled.add(facts.name)
    return levels[_OUTER], levels[_MIDDLE]


def _padded_sizes(extent: int, lanes: int) -> Sequence[int]:
    """Return the tiles of an axis that need not divide it; empty if good ones do.

    Args:
        lanes: The lanes of a vector along the vectorized axis; 0 along the other one.
    """
    if not lanes:
        return range(MAX_ROWS, 0, -1) if has_no_tile(extent, 2, MAX_ROWS) else ()
    sizes = [n * lanes for n in range(MAX_VECTORS, 0, -1)]
    return sizes if has_no_tile(extent, lanes, MAX_VECTORS * lanes, lanes) else ()
