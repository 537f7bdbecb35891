"""The rule that tiles reductions in the structure SSRSRS (Ansor, OSDI 2020, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cpu.padded_tiles import has_no_tile, padded_tiles
from tuner.space.rules.cpu.ragged_sums import ragged_fork
from tuner.space.rules.epilogue import is_epilogue
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling
from tuner.space.tables.nest import NUM_LEVELS, REDUCTION_LEVELS, SPATIAL_LEVELS, TiledNest

MAX_ROWS = 16
"""Unrolled rows along one axis: the number of vector registers of AVX2. The static filter drops
tiles that spill.
"""
MAX_VECTORS = 8
"""Vectors along the vectorized axis: half of the vector registers of AVX2. Chosen."""
MIN_ROWS = 3
"""If no number of rows from here to `MAX_ROWS` divides an axis, the last tile is partial: with
smaller tiles, multiply-adds wait for each other. Chosen.
"""
MAX_UNROLLED_STEPS = 8
"""Steps of the sum in an unrolled body: fewer loop instructions against longer code. Chosen."""
PADDED_LEVELS = (0, 3, 6)
"""The levels of the parts of an axis whose tiles need not divide it."""


class MultiLevelTiling:
    """Tiles each reduction into a register tile inside cache tiles.

        for i, j, k in ...:         for i0, j0 in ...:  # parallel
            C[i, j] += ...    ->        for i1, j1, k0, i2, j2, k1 in ...:
                                            for k2, i3 in ...:  # unrolled
                                                for j3 in ...:  # vectorized
                                                    C[...] += ...

    Tiles divide the axes of most shapes. An axis without a good divisor, such as a prime number of
    columns, is cut into whole vectors or rows, and the last tile is partial.

    The rule offers up to three ways to write the output tile of one `i1, j1`. `direct` accumulates
    in the output, `cached` in a buffer that is copied when the tile is finished. `fused` runs the
    elementwise consumer on the finished tile instead of the copy. Sums over rows of different
    lengths have a sketch of their own: see `ragged_sums`.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Tile every reduction; fork for each way to write its output."""
        drafts = [draft]
        for name, facts in draft.block_facts().items():
            if facts.is_reduction and name not in draft.scheduled:
                drafts = [fork for d in drafts for fork in _tiled(d, name)]
        return drafts


def _tiled(draft: SketchBuilder, name: str) -> list[SketchBuilder]:
    facts = draft.block_facts()
    block = facts[name]
    ragged = ragged_fork(draft, block)
    if ragged is not None:
        return [ragged]
    if all(axis.is_reduction for axis in block.axes):
        # A single element needs no buffer for its tile, and no loop in which an epilogue runs.
        direct = draft.fork("direct")
        _tile(direct, block, None)
        return [direct]
    consumers = draft.consumers(name)
    if len(consumers) == 1 and draft.is_intermediate(name):
        consumer = facts.get(consumers[0])
        if consumer is not None and is_epilogue(block, consumer):
            fused = draft.fork("fused", "fused")
            _tile(fused, block, fused.schedule.get_block(consumer.name))
            fused.scheduled.add(consumer.name)
            return [fused]
    direct, cached = draft.fork("direct"), draft.fork("cached", "cached_write")
    _tile(direct, block, None)
    copy = cached.schedule.cache_write(cached.schedule.get_block(name), 0, "local")
    _tile(cached, block, copy)
    cached.scheduled.add(cached.block_name(copy))
    return [direct, cached]


@dataclass
class _TiledLoops:
    """The loops of a tiled block, and the columns of the table that hold their extents.

    Attributes:
        levels: The loops by level, each level in the order of the axes.
        columns: See `TiledNest`.
        remainder_levels: See `TiledNest`.
        register_factors: By spatial axis, the extents of its two innermost loops.
    """

    levels: list[list[LoopRV]] = field(default_factory=lambda: [[] for _ in range(NUM_LEVELS)])
    columns: list[tuple[int | None, ...]] = field(default_factory=list)
    remainder_levels: list[int | None] = field(default_factory=list)
    register_factors: dict[int, tuple[ExprRV, ExprRV]] = field(default_factory=dict)


def _tile(draft: SketchBuilder, facts: BlockFacts, epilogue: BlockRV | None) -> None:
    """Tile a block; `epilogue` is the block that reads its output tile, if any."""
    schedule = draft.schedule
    tiled = _split_axes(draft, facts)
    levels, inner = tiled.levels, tiled.register_factors
    vector = facts.vector_axis if facts.vector_axis in inner else None
    if vector is not None:
        # The vectorized loop is the innermost one.
        levels[6].append(levels[6].pop(list(inner).index(vector)))
    schedule.reorder(*chain.from_iterable(levels))
    if epilogue is not None:
        _place_epilogue(draft, facts, epilogue, levels[1] or levels[0], inner)
    for loop in levels[5]:
        schedule.unroll(loop)
    _expand(draft, levels[6], vector is not None)
    outer = draft.parallelize(levels[0])
    draft.tilings.append(Tiling(facts.name, outer - 1, outer + len(levels[1])))
    draft.nests.append(
        TiledNest(
            facts,
            tuple(tiled.columns),
            tuple(tiled.remainder_levels),
            vector,
            fills_rows=epilogue is not None and _reads_copies(draft, facts),
        )
    )
    draft.scheduled.add(facts.name)


def _reads_copies(draft: SketchBuilder, facts: BlockFacts) -> bool:
    """Return whether all rows that a tile reads are in arrays that the program allocates.

    Then rows of a tile may end in a whole vector: see `compiler/passes/cpu/fill_vectors.py`.
    """
    axis = facts.vector_axis
    if axis is None:
        return False
    params = {buffer.name for buffer in draft.func.buffers}
    rows = [read for read in facts.reads if read.strides[axis]]
    return all(row.strides[axis] == 1 and row.buffer not in params for row in rows)


def _split_axes(draft: SketchBuilder, facts: BlockFacts) -> _TiledLoops:
    """Split the loops of a block into those of its levels, by knobs."""
    tiled = _TiledLoops()
    limits = _limits(draft, facts)
    loops = draft.loops(draft.schedule.get_block(facts.name))
    for index, (axis, loop) in enumerate(zip(facts.axes, loops, strict=True)):
        axis_levels = REDUCTION_LEVELS if axis.is_reduction else SPATIAL_LEVELS
        if axis.extent == 1:
            tiled.levels[axis_levels[0]].append(loop)
            tiled.remainder_levels.append(axis_levels[0])
            tiled.columns.append((None,) * NUM_LEVELS)
            continue
        used = axis_levels[: 2 if axis.is_reduction and limits[index] is None else len(axis_levels)]
        sizes = [] if axis.is_reduction else _padded_sizes(draft, facts, index)
        if sizes:
            used = PADDED_LEVELS
            inner, inner_columns = padded_tiles(draft, axis.extent, sizes)
            part_loops = draft.schedule.split(loop, [None, *inner])
            axis_columns = dict(zip(used[1:], inner_columns, strict=True))
        else:
            limit = limits[index] or axis.extent
            factors, first = draft.tile(loop, axis.extent, len(used), limit)
            inner = (factors[-2], factors[-1])
            part_loops = draft.schedule.split(loop, factors)
            axis_columns = {level: first + n for n, level in enumerate(used)}
        for level, part_loop in zip(used, part_loops, strict=True):
            tiled.levels[level].append(part_loop)
        tiled.columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
        tiled.remainder_levels.append(used[0] if sizes else None)
        if not axis.is_reduction:
            tiled.register_factors[index] = inner
    return tiled


def _padded_sizes(draft: SketchBuilder, facts: BlockFacts, index: int) -> list[int]:
    """Return the tiles of a spatial axis that need not divide it; empty if good ones do."""
    extent = facts.axes[index].extent
    if index != facts.vector_axis:
        sizes = list(range(MAX_ROWS, 0, -1))
        return sizes if has_no_tile(extent, MIN_ROWS, MAX_ROWS) else []
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    sizes = [n * lanes for n in range(MAX_VECTORS, 0, -1)]
    return sizes if has_no_tile(extent, 2 * lanes, MAX_VECTORS * lanes, lanes) else []


def _limits(draft: SketchBuilder, facts: BlockFacts) -> list[int | None]:
    """Return the maximum extent of the innermost part by axis; None for an axis without one."""
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    unrolled = max(
        (i for i, a in enumerate(facts.axes) if a.is_reduction and a.extent > 1), default=None
    )
    limits: list[int | None] = []
    for index, axis in enumerate(facts.axes):
        if axis.is_reduction:
            limits.append(MAX_UNROLLED_STEPS if index == unrolled else None)
        else:
            limits.append(MAX_VECTORS * lanes if index == facts.vector_axis else MAX_ROWS)
    return limits


def _expand(draft: SketchBuilder, loops: list[LoopRV], has_vectors: bool) -> None:
    """Unroll the register tile, and vectorize its last loop."""
    for loop in loops[:-1] if has_vectors else loops:
        draft.schedule.unroll(loop)
    if has_vectors:
        draft.schedule.vectorize(loops[-1])


def _place_epilogue(
    draft: SketchBuilder,
    facts: BlockFacts,
    epilogue: BlockRV,
    around: list[LoopRV],
    inner: dict[int, tuple[ExprRV, ExprRV]],
) -> None:
    """Run the epilogue on each finished tile, in register tiles of the same shape."""
    schedule = draft.schedule
    schedule.reverse_compute_at(epilogue, around[-1], preserve_unit_loops=True)
    spatial = [i for i, axis in enumerate(facts.axes) if not axis.is_reduction]
    loops = draft.loops(epilogue)[-len(spatial) :]
    outer: list[LoopRV] = []
    tile: dict[int, LoopRV] = {}
    for index, loop in zip(spatial, loops, strict=True):
        if index not in inner:
            outer.append(loop)
            continue
        parts = schedule.split(loop, list(inner[index]))
        outer.append(parts[0])
        tile[index] = parts[1]
    vector = facts.vector_axis
    if vector in tile:
        tile[vector] = tile.pop(vector)
    schedule.reorder(*outer, *tile.values())
    _expand(draft, list(tile.values()), vector in tile)
