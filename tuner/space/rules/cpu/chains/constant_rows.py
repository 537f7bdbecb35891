"""Products of a row and constant weights in few bits, several columns at once.

The weights of a column are contiguous along the sum, so they are read in lanes of partial sums. If
they are constant, those of neighbouring columns can lie side by side, in panels that are made once.
"""

from __future__ import annotations

from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.nodes import Block, Load, Store, Var
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.rules.cpu.packed.unpacked_weights import copy_in_panels
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder

VECTORS = (8, 4, 2, 1)
"""Options for the vectors of columns that are summed at once. Chosen. A row times 4096 x 4096
weights of 4 bits in groups of 32 took 714, 762, 833 and 932 us on a Zen 4, and 1070 us in lanes.
"""
_OUTER, _TILE = 0, 6


def constant_row_forks(draft: SketchBuilder) -> list[SketchBuilder]:
    """Return a draft that sums columns in vectors, if the program has one such product.

    for j, k in ...:                 W' = W in panels of 64 columns  # once
        C[j] += A[k] * W[j, k]  ->   for j0, k in ...:  # j0 parallel
                                         for j1 in ...:  # vectorized
                                             C[j] += A[k] * W'[j0, k, j1]
    """
    blocks = {site.block.name: site.block for site in sites(draft.schedule.func)}
    rows = {name: _row(facts) for name, facts in draft.block_facts().items()}
    products = [
        (name, row, across, loads)
        for name, row in rows.items()
        if row is not None
        and (loads := _constants(draft, blocks[name], across := blocks[name].iter_vars[row].var))
    ]
    if len(products) != 1:
        return []
    fork = draft.fork("panels")
    try:
        _schedule(fork, *products[0])
    except ScheduleError:
        return []  # the program has other schedules
    return [fork]


def _row(facts: BlockFacts) -> int | None:
    """Return the only long spatial axis of a block whose sums are taken in lanes."""
    long = [i for i, a in enumerate(facts.axes) if not a.is_reduction and a.extent > 1]
    has_bytes = any(read.item_bytes == 1 for read in facts.reads)
    return long[0] if len(long) == 1 and facts.lane_axis is not None and has_bytes else None


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


def _schedule(draft: SketchBuilder, name: str, row: int, across: Var, loads: list[Load]) -> None:
    schedule, facts = draft.schedule, draft.block_facts()[name]
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    extent = facts.axes[row].extent
    size, column = draft.cut(extent, padded_sizes(extent, [lanes * n for n in VECTORS]))
    copy_in_panels(draft, schedule.get_block(name), loads, across, size)
    consumer = elementwise_consumer(draft, facts)
    loops = draft.loops(name)
    outer, inner = schedule.split(loops[row], [None, size])
    steps = [loop for loop, axis in zip(loops, facts.axes, strict=True) if axis.is_reduction]
    units = [loop for loop in loops if loop not in (loops[row], *steps)]
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
    names = {load.buffer.name for load in loads}
    packed = [index for index, read in enumerate(facts.reads, 1) if read.buffer in names]
    draft.note(facts, {row: {_OUTER: column, _TILE: column + 1}}, {}, row, packed=packed)
    draft.scheduled |= {name, draft.block_name(init)}
