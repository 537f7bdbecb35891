"""Copies of operands in panels, in the order in which register tiles of products read them."""

from __future__ import annotations

from compiler.passes.common.tile_buffers import KEY
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.rules.sketch_builder import SketchBuilder


def copy_rows(
    draft: SketchBuilder,
    copy: BlockRV,
    read: TensorAccess,
    dims: tuple[int, int],
    height: ExprRV,
) -> None:
    """Copy rows into panels as high as a register tile, the last one padded.

    Args:
        draft: The draft.
        copy: The block that copies.
        read: The access to the operand.
        dims: The dimension of rows, and that of the sum.
        height: The rows of a panel.
    """
    schedule, (across, along) = draft.schedule, dims
    loops = draft.loops(copy)[-len(read.shape) :]
    panels, lane = schedule.split(loops[across], [None, height])
    schedule.reorder(panels, lane, loops[along])
    schedule.unroll(lane)
    schedule.vectorize(loops[along])
    schedule.annotate(copy, KEY, [0, across, height])


def copy_columns(
    draft: SketchBuilder,
    copy: BlockRV,
    read: TensorAccess,
    column: int,
    width: ExprRV,
) -> None:
    """Copy columns into panels as wide as a register tile; transpose them if they are not last.

    Args:
        draft: The draft.
        copy: The block that copies.
        read: The access to the operand.
        column: The dimension of columns.
        width: The columns of a panel.
    """
    schedule = draft.schedule
    loops = draft.loops(copy)[-len(read.shape) :]
    panels, lane = schedule.split(loops[column], [None, width])
    if column == len(read.shape) - 1:
        schedule.reorder(panels, loops[-2], lane)
        schedule.vectorize(lane)
    else:
        lanes = max(1, draft.cpu.vector_bits // (8 * read.item_bytes))
        size = max(d for d in divisors(read.shape[-1]) if d <= lanes)
        vectors, vector = schedule.split(loops[-1], [None, size])
        schedule.reorder(panels, vectors, lane, vector)
        schedule.unroll(lane)
        schedule.vectorize(vector)
    schedule.annotate(copy, KEY, [0, column, width])
