"""Products of a row and constant weights in few bits, several columns at once.

The weights of a column are contiguous along the sum, so they are read in lanes of partial sums. If
they are constant, those of neighbouring columns can lie side by side, in panels that are made once,
and in groups of steps if the CPU has dot products of the types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.nodes import Block, Load, Store, Var
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.rules.cpu.packed.unpacked_weights import copy_in_panels
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.cpu.step_groups import step_group
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder

VECTORS = (8, 4, 2, 1)
"""Options for the vectors of columns that are summed at once. Chosen. A row times 4096 x 4096
weights of 4 bits in groups of 32 took 714, 762, 833 and 932 us on a Zen 4, and 1070 us in lanes.
"""
_OUTER, _TILE = 0, 6


@dataclass(frozen=True, slots=True)
class _RowProduct:
    """A sum over weights: its block, the axis of its columns, its steps, and the weights."""

    block: Block
    facts: BlockFacts
    row: int
    loads: list[Load]

    @property
    def across(self) -> Var:
        """The variable of the columns."""
        return self.block.iter_vars[self.row].var

    @property
    def steps(self) -> list[int]:
        """The axes of the sum."""
        return [index for index, axis in enumerate(self.facts.axes) if axis.is_reduction]


def constant_row_forks(
    draft: SketchBuilder, blocks: Mapping[str, BlockFacts]
) -> list[SketchBuilder]:
    """Return a draft that sums columns in vectors, if one of the blocks is such a product.

    for j, k in ...:                 W' = W in panels of 64 columns  # once
        C[j] += A[k] * W[j, k]  ->   for j0, k0 in ...:  # j0 parallel
                                         for k1, j1 in ...:  # unrolled: a group; vectorized
                                             C[j] += A[k] * W'[j0, k0, j1, k1]
    """
    products = [
        product
        for site in sites(draft.schedule.func)
        if (facts := blocks.get(site.block.name)) is not None
        and (product := _row_product(draft, site.block, facts)) is not None
    ]
    if len(products) != 1:
        return []
    fork = draft.fork("panels")
    try:
        _schedule(fork, products[0])
    except ScheduleError:
        return []  # the program has other schedules
    return [fork]


def _row_product(draft: SketchBuilder, block: Block, facts: BlockFacts) -> _RowProduct | None:
    """Return a sum in lanes of one long row, whose weights are constants."""
    long = [i for i, a in enumerate(facts.axes) if not a.is_reduction and a.extent > 1]
    has_bytes = any(read.item_bytes == 1 for read in facts.reads)
    if len(long) != 1 or facts.lane_axis is None or not has_bytes:
        return None
    loads = _constants(draft, block, block.iter_vars[long[0]].var)
    return _RowProduct(block, facts, long[0], loads) if loads else None


def _constants(draft: SketchBuilder, block: Block, across: Var) -> list[Load]:
    """Return the elements that differ between columns; none if one is not constant, or computed."""
    constants, store = constant_params(draft.schedule.func), block.body
    assert isinstance(store, Store), "a block with facts has one statement"
    loads = [
        node
        for node in walk(store.value)
        if isinstance(node, Load) and node.buffer != store.buffer and across in walk(node)
    ]
    is_suitable = all(n.buffer in constants and across in n.indices for n in loads)
    return list({node.buffer: node for node in loads}.values()) if is_suitable else []


def _dot_group(draft: SketchBuilder, product: _RowProduct) -> DotGroup:
    """Return the steps that the CPU multiplies and adds at once, if panels can hold groups."""
    facts, loads, step = product.facts, product.loads, product.steps[-1]
    is_plain = len(loads) == 1 and product.block.iter_vars[step].var in loads[0].indices
    if not (is_plain and facts.is_multiply_add and len(facts.reads) == 2):
        return DotGroup()
    left, right = sorted(facts.reads, key=lambda read: read.buffer == loads[0].buffer.name)
    dot = step_group(draft, facts, left, right)
    return dot if facts.axes[step].extent % dot.size == 0 else DotGroup()


def _schedule(draft: SketchBuilder, product: _RowProduct) -> None:
    schedule, facts, row = draft.schedule, product.facts, product.row
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    name, extent = facts.name, facts.axes[row].extent
    size, column = draft.cut(extent, padded_sizes(extent, [lanes * n for n in VECTORS]))
    dot, step = _dot_group(draft, product), product.block.iter_vars[product.steps[-1]].var
    groups = [(step, dot.size)] if dot.size > 1 else []
    copy_in_panels(
        draft, schedule.get_block(name), product.loads, [(product.across, size), *groups]
    )
    consumer = elementwise_consumer(draft, facts)
    loops = draft.loops(name)
    outer, inner = schedule.split(loops[row], [None, size])
    steps = [loops[axis] for axis in product.steps]
    units = [loop for loop in loops if loop not in (loops[row], *steps)]
    if groups:
        steps[-1:] = schedule.split(steps[-1], [None, dot.size])
        schedule.unroll(steps[-1])
    schedule.reorder(*units, outer, *steps, inner)
    if consumer is not None:
        reader = schedule.get_block(consumer)
        schedule.reverse_compute_at(reader, outer, preserve_unit_loops=True)
        schedule.vectorize(draft.loops(reader)[-1])
        draft.scheduled.add(consumer)
    schedule.vectorize(inner)
    draft.parallelize([*units, outer])
    init = schedule.decompose_reduction(schedule.get_block(name), steps[0])
    schedule.vectorize(draft.loops(init)[-1])
    names = {load.buffer.name for load in product.loads}
    packed = [index for index, read in enumerate(facts.reads, 1) if read.buffer in names]
    levels = {row: {_OUTER: column, _TILE: column + 1}}
    draft.note(facts, levels, {}, row, packed=packed, dot=dot)
    draft.scheduled |= {name, draft.block_name(init)}
