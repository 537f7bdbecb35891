"""Elementwise blocks whose operands are contiguous along one axis: several vectors at once.

A block over contiguous memory is one row. It is cut into parts that advance together, so that
several streams of memory are read and written at once.
"""

from __future__ import annotations

from compiler.ir.core.nodes import Conditional, Expr, Load, Var
from compiler.ir.core.visit import operands_of, walk
from compiler.schedule.trace.handle import ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.rules.cpu.cache_sets import fits_sets
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.sketch_builder import SketchBuilder

VECTORS = (8, 4, 2, 1, 6, 3, 7, 5)
"""Options for the vectors of a step: loads in flight against longer code. Chosen. On a Zen 3, relu
of 255 x 55 x 53 takes 86 us with four and 463 with one.
"""
STREAMS = (1, 2, 3, 4)
"""Options for the parts of a row that advance together. Chosen. On a Zen 3, relu of 255 x 55 x 53
takes 83 us with four and 86 with one; silu of 320 x 64 x 64 takes 693 with two and 732 with one.
"""
ROWS = (1, 2, 4, 8, 3, 6)
"""Options for the rows that advance together, if they are not one row. Chosen as `STREAMS`."""
TASKS = (1, 2, 4)
"""Options for the tasks of each core: fewer launches against cores that end together. Chosen."""
MIN_STEPS = 8
"""Steps of a part of a row at least, so that partial last steps are few. Chosen."""
_OUTER, _MIDDLE, _UNROLLED, _TILE = 0, 1, 5, 6


def is_contiguous(facts: BlockFacts) -> bool:
    """Return whether all operands are contiguous, or constant, along the last axis."""
    vector = facts.vector_axis
    if vector is None or vector != len(facts.axes) - 1 or facts.axes[vector].extent == 1:
        return False
    return all(read.strides[vector] in (0, 1) for read in facts.reads)


def schedule_contiguous(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Fuse the axes that are contiguous together, and vectorize the last one of the others.

    An axis that selects among sources, as in a concatenation, is not fused: a vector would be
    divided to find its position, and be gathered.
    """
    last = len(facts.axes) - 1
    first = last
    fixed = _selecting_axes(draft, facts)
    while facts.is_affine and first and facts.runs_on(first - 1, first):
        if fixed & {first - 1, first}:
            break
        first -= 1
    loops = draft.loops(facts.name)
    if first < last:
        loops[first:] = [draft.schedule.fuse(*loops[first:])]
        facts = facts.fused(first, last)
    rows = [index for index, axis in enumerate(facts.axes[:first]) if axis.extent > 1]
    if rows:
        _cut_rows(draft, facts, loops, rows[-1])
    else:
        _cut_row(draft, facts, loops)


def _selecting_axes(draft: SketchBuilder, facts: BlockFacts) -> set[int]:
    """Return the axes on which conditions of a block depend, except through what they read."""
    block = next(s.block for s in sites(draft.schedule.func) if s.block.name == facts.name)
    conditions = [n.condition for n in walk(block.body) if isinstance(n, Conditional)]
    names = {name for condition in conditions for name in _position_names(condition)}
    return {index for index, axis in enumerate(facts.axes) if axis.name in names}


def _position_names(condition: Expr) -> set[str]:
    """Return the names of the variables of a condition that are not in indices of loads."""
    match condition:
        case Load():
            return set()
        case Var(name):
            return {name}
        case _:
            return {name for child in operands_of(condition) for name in _position_names(child)}


def _lanes(draft: SketchBuilder, facts: BlockFacts) -> int:
    return max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))


def _cut_row(draft: SketchBuilder, facts: BlockFacts, loops: list[LoopRV]) -> None:
    """Cut the only row into tasks of cores and streams, and vectorize their steps.

    The tables count streams as neighbours in memory.
    """
    schedule, lanes = draft.schedule, _lanes(draft, facts)
    vector, cores = len(facts.axes) - 1, draft.cpu.num_cores
    # Each stream has some steps of the longest vectors, so that little is padded.
    most = facts.points // (MIN_STEPS * max(VECTORS) * lanes)
    counts = [cores * n for n in TASKS if cores > 1 and cores * n <= most]
    levels: dict[int, int] = {}
    factors: list[ExprRV] = []
    if counts:
        tasks, levels[_OUTER] = draft.choose(counts)
        factors.append(tasks)
    parts = [n * max(counts, default=1) for n in STREAMS]
    streams = [
        n
        for n, part in zip(STREAMS, parts, strict=True)
        if n == 1 or (part <= most and _fits_sets(facts, n, facts.points // part))
    ]
    if len(streams) > 1:
        count, levels[_UNROLLED] = draft.choose(streams)
        factors.append(count)
    sizes = padded_sizes(facts.points, [lanes * n for n in VECTORS])
    size, levels[_TILE] = draft.choose(sizes)
    *outer, step, inner = schedule.split(loops[-1], [*factors, None, size])
    schedule.vectorize(inner)
    if len(streams) > 1:
        stream = outer.pop()
        schedule.reorder(step, stream, inner)
        schedule.unroll(stream)
    draft.parallelize(outer)
    draft.note(facts, {vector: levels}, {vector: _MIDDLE}, vector)


def _cut_rows(draft: SketchBuilder, facts: BlockFacts, loops: list[LoopRV], row: int) -> None:
    """Cut an axis into rows that advance together, and vectorize their steps."""
    schedule, lanes = draft.schedule, _lanes(draft, facts)
    vector, extent, width = len(facts.axes) - 1, facts.axes[row].extent, facts.axes[-1].extent
    rows_apart = [n for n in ROWS if n == 1 or _fits_sets(facts, n, width)]
    count, row_column = draft.cut(extent, padded_sizes(extent, rows_apart))
    sizes = padded_sizes(width, [lanes * n for n in VECTORS])
    if width <= max(VECTORS) * lanes and width not in sizes:
        sizes = (width, *sizes)  # a whole row ends in shorter vectors
    size, column = draft.cut(width, sizes)
    outer, rows = schedule.split(loops[row], [None, count])
    step, inner = schedule.split(loops[-1], [None, size])
    others = [loop for index, loop in enumerate(loops) if index not in (row, vector)]
    schedule.reorder(*others, outer, step, rows, inner)
    schedule.unroll(rows)
    schedule.vectorize(inner)
    draft.parallelize([*others, outer])
    levels = {
        row: {_OUTER: row_column, _TILE: row_column + 1},
        vector: {_MIDDLE: column, _TILE: column + 1},
    }
    draft.note(facts, levels, {}, vector)


def _fits_sets(facts: BlockFacts, count: int, distance: int) -> bool:
    """Return whether the first-level cache holds a line of each operand of all streams.

    Args:
        distance: The elements between two streams.
    """
    operands = [a for a in (facts.write, *facts.reads) if a.strides[-1]]
    return fits_sets(count * len(operands), *(distance * a.item_bytes for a in operands))
