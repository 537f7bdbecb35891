"""Sketches of products in the tile registers of a CPU (AMX); see `MatrixTiles` of the emitters."""

from __future__ import annotations

from compiler.backends.cpu.codegen.emitters.matrix_tiles import (
    KEY,
    MAX_TILES,
    ROW_BYTES,
    ROWS,
    multiplies_tiles,
)
from compiler.passes.common.tile_buffers import KEY as LAYOUT_KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.product_roles import Operand, Product
from tuner.space.rules.sketch_builder import SketchBuilder

BLOCKS = (1, 2, 4, 8, 16)
"""Options for the blocks of columns of each core: the panels of one should stay in the second-level
cache. Chosen.
"""
_OUTER, _ROWS, _PANELS, _INNER, _VECTOR = 0, 1, 3, 4, 6


def tile_forks(draft: SketchBuilder, facts: BlockFacts, product: Product) -> list[SketchBuilder]:
    """Return the draft of a product by tile registers, if the CPU has them and tiles divide it.

    for j0 in ...:  # parallel
        B' = B[j0] in panels of 32 columns, groups of neighbours along the sum
        for i0, j1 in ...:
            C[...] = 0
            for k0 in ...:  # matrix_tiles
                for k1, k2, i1 in ...:
                    for j2 in ...:  # vectorized, without tile registers
                        C[...] += A[i0, i1, k0, k1, k2] * B'[j1, k0, k1, j2, k2]
    """
    dtypes = draft.dtypes()
    accesses = (product.left.read, product.right.read, facts.write)
    left, right, total = (dtypes[access.buffer] for access in accesses)
    row, column, step = product.tiled
    depth = ROW_BYTES // product.left.read.item_bytes
    units = ((row, ROWS), (column, ROWS), (step, depth))
    is_divisible = all(facts.axes[axis].extent % unit == 0 for axis, unit in units)
    is_contiguous = product.left.read.strides[step] == 1
    if not (multiplies_tiles(draft.cpu, left, right, total) and is_divisible and is_contiguous):
        return []
    fork = draft.fork("matrix_tiles", "matrix_tiles")
    try:
        _schedule(fork, facts, product)
    except ScheduleError:
        return []  # the program has other schedules
    return [fork]


def _schedule(draft: SketchBuilder, facts: BlockFacts, product: Product) -> None:
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    loops = draft.loops(block)
    row, column, step = product.tiled
    extents = [facts.axes[axis].extent for axis in (row, column)]
    height, row_column = draft.cut(extents[0], _sizes(extents[0]))
    width, width_column = draft.choose(_sizes(extents[1]))
    counts = [draft.cpu.num_cores * n for n in BLOCKS]
    blocks, block_column = draft.choose([n for n in counts if n * ROWS <= extents[1]] or [1])
    i0, i1 = schedule.split(loops[row], [None, height])
    j0, j1, j2 = schedule.split(loops[column], [blocks, None, width])
    group = 4 // product.left.read.item_bytes
    k0, k1, k2 = schedule.split(loops[step], [None, ROWS, group])
    batch = [loop for axis, loop in enumerate(loops) if axis not in product.tiled]
    schedule.reorder(*batch, j0, i0, j1, k0, k1, k2, i1, j2)
    _pack(draft, block, product.right, j0, (width, group))
    schedule.vectorize(j2)
    schedule.annotate(k0, KEY, 1)
    draft.parallelize(batch or [j0])
    init = schedule.decompose_reduction(block, k0)
    schedule.vectorize(draft.loops(init)[-1])
    columns = {
        column: {_OUTER: block_column, _VECTOR: width_column},
        row: {_ROWS: row_column, _INNER: row_column + 1},
    }
    draft.note(facts, columns, {column: _PANELS, step: _INNER}, column)
    draft.scheduled |= {facts.name, draft.block_name(init)}


def _sizes(extent: int) -> list[int]:
    return [n * ROWS for n in range(MAX_TILES, 0, -1) if extent % (n * ROWS) == 0]


def _pack(
    draft: SketchBuilder, block: BlockRV, right: Operand, loop: LoopRV, sizes: tuple[ExprRV, int]
) -> None:
    """Copy the right operand into panels, as the instructions take it.

    Args:
        draft: The draft.
        block: The product.
        right: The operand.
        loop: The loop whose runs each read a copy.
        sizes: The columns of a panel, and the neighbours along the sum in a group.
    """
    schedule, (width, group) = draft.schedule, sizes
    copy = draft.copy_input(block, right.read.buffer)
    schedule.compute_at(copy, loop, preserve_unit_loops=True)
    loops = draft.loops(copy)[-len(right.read.shape) :]
    panels, lane = schedule.split(loops[right.across], [None, width])
    groups, along = schedule.split(loops[right.along], [None, group])
    schedule.reorder(panels, groups, lane, along)
    schedule.vectorize(along)
    schedule.annotate(copy, LAYOUT_KEY, [0, right.across, width, right.along, group])
    draft.scheduled.add(draft.block_name(copy))
