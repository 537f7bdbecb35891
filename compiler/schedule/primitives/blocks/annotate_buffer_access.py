"""Declare which box of a buffer a block accesses: `annotate_buffer_access`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.regions import EXPLICIT_REGIONS
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import (
    Annotations,
    BinOp,
    Block,
    BufferRegion,
    Expr,
    Range,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify_but_for_races
from compiler.schedule.error import refusal
from compiler.schedule.index.range_map import RangeMap
from compiler.schedule.primitives.storage.transform_layout import BufferMode
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.tree.tree import block_path, realize_at, replace_at, with_block


def annotate_buffer_access(
    func: PrimFunc, block: str, index: int, mode: BufferMode, ranges: RangeMap
) -> PrimFunc:
    """Declare the box that a block reads or writes of a buffer, instead of the derived one.

    Primitives that move producers of what the block reads compute the declared box. It helps where
    the indices are no sums of iterators, and the whole buffer would be computed otherwise.

    Args:
        index: The number of the region among the reads or writes of the block.
        mode: Which of the two.
        ranges: The first index and the end of each dimension, in terms of the iterators.

    Requires:
        The block has such a region, with as many dimensions as there are ranges. Each
        access of the block is proved to be in the box.

    Rewrites:
        reads(A[0:200])                      ->    reads(A[v * 2 - 3:v * 2 + 3])
        B[v] = A[int(floor(v * 2 + 0.5))]          B[v] = A[int(floor(v * 2 + 0.5))]

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("annotate_buffer_access", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    regions = realize.block.reads if mode == "read" else realize.block.writes
    buffer = region_buffer(regions, index, mode, realize, refuse)
    pairs = ranges.at([i.var for i in realize.block.iter_vars])
    if len(pairs) != len(buffer.shape):
        reason = f"{len(pairs)} ranges for {len(buffer.shape)} dimension(s) of {buffer.name}"
        raise refuse(reason, realize, "invalid_argument")
    box = tuple(_range(start, stop) for start, stop in pairs)
    new = (*regions[:index], BufferRegion(buffer, box), *regions[index + 1 :])
    annotated = _declaring(realize.block, mode, index)
    changed = replace(annotated, reads=new) if mode == "read" else replace(annotated, writes=new)
    func = replace_at(func, path, with_block(realize, changed))
    try:
        verify_but_for_races(func)
    except VerifyError as error:
        raise refuse(
            f"the accesses may leave the box: {error.message}", realize, "not_proved"
        ) from None
    return func


def _range(start: Expr, stop: Expr) -> Range:
    if isinstance(stop, BinOp) and stop.op == "+" and stop.lhs == start:
        return Range(start, stop.rhs)
    return Range(start, simplify(BinOp("-", stop, start)))


def _declaring(block: Block, mode: BufferMode, index: int) -> Block:
    """Return a block whose annotation names one more region as declared."""
    key = EXPLICIT_REGIONS[mode]
    notes: Annotations = tuple(item for item in block.annotations if item[0] != key)
    earlier = dict(block.annotations).get(key, ())
    assert isinstance(earlier, tuple), "the annotation is a list of numbers"
    numbers = earlier if index in earlier else (*earlier, index)
    return replace(block, annotations=(*notes, (key, numbers)))
