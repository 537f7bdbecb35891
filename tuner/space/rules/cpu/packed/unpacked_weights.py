"""Weights that a block unpacks from fewer bytes, such as two weights of 4 bits in a byte.

A packed product computes them in its panels, where they stay in the caches: they would be many
times larger in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.nodes import Expr, Load, Store
from compiler.ir.core.visit import walk
from compiler.passes.common.tile_buffers import KEY
from compiler.passes.cpu.hoist_constants import is_unpacked
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockPosition, block_facts, sites
from tuner.space.analysis.index_divisors import index_divisors
from tuner.space.analysis.product_roles import Operand
from tuner.space.rules.sketch_builder import SketchBuilder

UNPACKED_STEPS = 4
"""Steps of a sum that are unpacked in an unrolled body, for one load of their scales. Chosen."""


def unpacked_periods(draft: SketchBuilder, operand: Operand) -> tuple[int, ...]:
    """Return the numbers by which the unpacking of an operand divides its index along the sum.

    For groups of 128, whose bytes have weights half a group apart, they are 128 and 64. Between
    multiples of the last one, the packed bytes are contiguous. Each divides the one before. Empty
    if no block unpacks the operand, or another one reads it, too.
    """
    for site in sites(draft.schedule.func):
        facts = block_facts(site)
        if facts is None or facts.write.buffer != operand.read.buffer or facts.is_reduction:
            continue
        is_smaller = sum(read.size_bytes for read in facts.reads) < facts.write.size_bytes
        if is_smaller and len(draft.consumers(facts.name)) == 1:
            return _periods(site, operand.along, facts.axes[operand.along].extent)
    return ()


def pack_constant_sources(draft: SketchBuilder, unpacking: BlockRV, dim: int, tile: ExprRV) -> bool:
    """Copy the constants that a block unpacks into panels, so that it reads them in vectors.

    Panels are made once: weights are then unpacked without transposing them in registers. If the
    unpacked weights are few enough to be made once themselves, the block stays as it is.

    Args:
        draft: The draft.
        unpacking: The block that unpacks weights.
        dim: The dimension of its output that panels cut.
        tile: The size of a panel along that.

    Returns:
        Whether the operands of the block are such copies now.
    """
    schedule, name = draft.schedule, draft.block_name(unpacking)
    constants = constant_params(schedule.func)
    store = next(site.block.body for site in sites(schedule.func) if site.block.name == name)
    assert isinstance(store, Store), "a block that unpacks weights has one statement"
    across = store.indices[dim]
    loads = {node.buffer: node for node in walk(store.value) if isinstance(node, Load)}
    are_constant = all(b in constants and across in load.indices for b, load in loads.items())
    if not are_constant or not is_unpacked(store):
        return False
    copy_in_panels(draft, unpacking, loads.values(), [(across, tile)])
    return True


def copy_in_panels(
    draft: SketchBuilder,
    block: BlockRV,
    loads: Iterable[Load],
    tile: Sequence[tuple[Expr, ExprRV | int]],
) -> None:
    """Copy the buffers of loads into panels, of so many elements along some indices of each."""
    for load in loads:
        sizes = [(load.indices.index(index), size) for index, size in tile]
        copy = draft.copy_input(block, load.buffer.name)
        draft.schedule.annotate(copy, KEY, [0, *itertools.chain.from_iterable(sizes)])
        draft.scheduled.add(draft.block_name(copy))


def unpack_across(
    draft: SketchBuilder, outer: Sequence[LoopRV], along: LoopRV, lane: LoopRV
) -> None:
    """Order the loops of a block that unpacks weights in vectors across a panel."""
    schedule = draft.schedule
    along, steps = schedule.split(along, [None, UNPACKED_STEPS])
    schedule.reorder(*outer, along, steps, lane)
    schedule.unroll(steps)
    schedule.vectorize(lane)


def _periods(site: BlockPosition, dim: int, extent: int) -> tuple[int, ...]:
    store = site.block.body
    index = store.indices[dim] if isinstance(store, Store) else None
    periods = [] if index is None else index_divisors(site.block, index)
    is_nested = all(a % b == 0 for a, b in zip([extent, *periods], periods, strict=False))
    return tuple(periods) if is_nested else ()
