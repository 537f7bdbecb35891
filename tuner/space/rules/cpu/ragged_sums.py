"""Sketches of sums over the first elements of rows, whose numbers are in a parameter."""

from __future__ import annotations

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import BlockRealize, Conditional
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_VECTORS = 8
"""Vectors of a row that are summed at once: common rows of embeddings are not longer. Chosen."""
STEPS = (1, 2, 4)
"""Options for the elements between two tests of the end. Chosen: rows are short."""
_COLUMNS, _INNER, _UNROLLED, _VECTOR = 3, 4, 5, 6


def ragged_fork(draft: SketchBuilder, facts: BlockFacts) -> SketchBuilder | None:
    """Return the draft of a sum that ends where a mask begins to exclude its elements.

    for i, j, k in ...:                     for i, j0 in ...:  # parallel
        S[i, j] += W[at[i] + k, j]    ->        for k0 in ...:  # up to the end of the row
            if at[i] + k < at[i + 1]                for k1 in ...:  # unrolled
            else 0                                      for j1 in ...:  # vectorized
                                                            S[i, j] += ...

    Returns:
        None if the sum has another form.
    """
    steps = [index for index, axis in enumerate(facts.axes) if axis.is_reduction]
    column = facts.vector_axis
    if not facts.is_conditional or len(steps) != 1 or column is None:
        return None
    if _decides(draft, facts, column):
        return None  # rows of one element: lanes would end at different steps
    fork = draft.fork("ragged")
    try:
        _schedule(fork, facts, steps[0], column)
    except ScheduleError:
        return None  # no mask ends it
    return fork


def _decides(draft: SketchBuilder, facts: BlockFacts, axis: int) -> bool:
    """Return whether a condition of a block depends on an axis."""
    realize = draft.schedule.get(draft.schedule.get_block(facts.name))
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    conditions = (n.condition for n in walk(realize.block.body) if isinstance(n, Conditional))
    return any(var.name == facts.axes[axis].name for each in conditions for var in variables(each))


def _schedule(draft: SketchBuilder, facts: BlockFacts, step: int, column: int) -> None:
    schedule = draft.schedule
    epilogue = epilogue_of(draft, facts, "local")
    block = schedule.get_block(facts.name)
    loops = draft.loops(block)
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    width, length = facts.axes[column].extent, facts.axes[step].extent
    sizes, column_at = draft.tile(loops[column], width, 2, MAX_VECTORS * lanes)
    count, step_at = draft.cut(length, [n for n in STEPS if length % n == 0])
    j0, j1 = schedule.split(loops[column], sizes)
    k0, k1 = schedule.split(loops[step], [None, count])
    rows = [loop for index, loop in enumerate(loops) if index not in (step, column)]
    schedule.reorder(*rows, j0, k0, k1, j1)
    schedule.unroll(k1)
    schedule.vectorize(j1)
    schedule.reverse_compute_at(epilogue, j0, preserve_unit_loops=True)
    schedule.vectorize(draft.loops(epilogue)[-1])
    draft.parallelize([*rows, j0])
    init = schedule.decompose_reduction(schedule.get_block(facts.name), k0)
    schedule.skip_masked(k0)
    columns = {
        column: {_COLUMNS: column_at, _VECTOR: column_at + 1},
        step: {_INNER: step_at, _UNROLLED: step_at + 1},
    }
    draft.note(facts, columns, {}, column)
    draft.scheduled |= {facts.name, draft.block_name(init)}
