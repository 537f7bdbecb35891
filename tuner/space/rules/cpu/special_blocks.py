"""The rule for reductions to several buffers at once, such as `argmax`, and for scans."""

from __future__ import annotations

from compiler.ir.core.nodes import BlockRealize, For
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, sites, special_facts
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_VECTORS = 4
"""Vectors of each partial result: several buffers share the registers. Chosen."""
MIN_LANES, MAX_LANES = 3, 32
_OUTER, _INNER, _REGISTERS = 0, 4, 6


class SpecialBlocks:
    """Vectorizes these blocks along a spatial axis, or by partial results of a row.

    for i, k in ...:                    for i in ...:  # parallel
        (N[i], M[i]) = better(              for k0 in ...:
            (N[i], M[i]), (k, A[i, k])          for k1 in range(16):  # vectorized
        )                          ->               (N_rf[k1], M_rf[k1]) = better(...)
                                            for k1 in range(16):
                                                (N[i], M[i]) = better(...)
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each reduction to several buffers, and each scan."""
        for site in sites(draft.schedule.func):
            facts = special_facts(site)
            if facts is not None and facts.name not in draft.scheduled:
                draft = _scheduled(draft, facts, has_init=site.block.init is not None)
        return [draft]


def _scheduled(draft: SketchBuilder, facts: BlockFacts, *, has_init: bool) -> SketchBuilder:
    """Return the draft with a vectorized block, or the unchanged draft if that is not possible."""
    fork = draft.fork("special")
    vector = facts.vector_axis
    lane = next((i for i in reversed(range(len(facts.axes))) if _suits(facts, i)), None)
    try:
        if vector is not None and facts.axes[vector].extent > 1:
            _run_across(fork, facts, vector, has_init=has_init)
        elif lane is not None and has_init:
            _run_along(fork, facts, lane)
        else:
            return draft
    except ScheduleError:
        return draft
    fork.scheduled.add(facts.name)
    return fork


def _suits(facts: BlockFacts, index: int) -> bool:
    steps = {read.strides[index] for read in facts.reads}
    axis = facts.axes[index]
    if not axis.is_reduction or 1 not in steps or not steps <= {0, 1}:
        return False
    return any(MIN_LANES <= lanes <= MAX_LANES for lanes in divisors(axis.extent))


def _run_across(draft: SketchBuilder, facts: BlockFacts, vector: int, *, has_init: bool) -> None:
    """Compute neighbouring results in vector lanes; a scan keeps the order of its loops."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    extent = facts.axes[vector].extent
    factors, first = draft.tile(loops[vector], extent, 2, MAX_VECTORS * lanes)
    outer, inner = schedule.split(loops[vector], factors)
    steps = [loops[i] for i, axis in enumerate(facts.axes) if axis.is_reduction]
    around = [
        outer if index == vector else loop
        for index, loop in enumerate(loops)
        if not facts.axes[index].is_reduction
    ]
    if has_init:
        schedule.reorder(*around, *steps, inner)
        draft.parallelize(around)
    elif vector and not facts.axes[0].is_reduction:
        draft.parallelize(loops[:1])
    schedule.vectorize(inner)
    if has_init:
        init = schedule.decompose_reduction(schedule.get_block(facts.name), steps[0])
        schedule.vectorize(draft.loops(init)[-1])
    _add_nest(draft, facts, vector, {_OUTER: first, _REGISTERS: first + 1})


def _run_along(draft: SketchBuilder, facts: BlockFacts, lane: int) -> None:
    """Reduce into as many partial results as there are lanes, row by row."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    extent = facts.axes[lane].extent
    factors, first = draft.tile(loops[lane], extent, 2, MAX_VECTORS * lanes)
    rows = sum(not axis.is_reduction for axis in facts.axes)
    _, inner = schedule.split(loops[lane], factors)
    partial = schedule.rfactor(inner, rows)
    block = schedule.get_block(facts.name)
    around = draft.loops(block)[:rows]
    if around:
        schedule.compute_at(partial, around[-1], preserve_unit_loops=True)
    old_names = {axis.name for axis in facts.axes}
    vector, steps = _parts(draft, partial, rows, old_names)
    assert vector is not None, "the new block has the lanes as an iterator"
    schedule.reorder(*steps, vector)
    schedule.vectorize(vector)
    if around:
        draft.parallelize(around)
    init = schedule.decompose_reduction(partial, steps[0])
    schedule.vectorize(draft.loops(init)[-1])
    draft.scheduled |= {draft.block_name(partial), draft.block_name(init)}
    _add_nest(draft, facts, lane, {_INNER: first, _REGISTERS: first + 1})


def _parts(
    draft: SketchBuilder, block: BlockRV, depth: int, old_names: set[str]
) -> tuple[LoopRV | None, list[LoopRV]]:
    """Return the loop of the new iterator, and the reduction loops."""
    realize = draft.schedule.get(block)
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    vector = None
    steps = []
    for handle in draft.loops(block)[depth:]:
        loop = draft.schedule.get(handle)
        assert isinstance(loop, For), "a loop's handle stands for a loop"
        pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        iterator = next(iter_var for iter_var, value in pairs if loop.var in set(walk(value)))
        if iterator.kind == "reduce":
            steps.append(handle)
        elif iterator.var.name not in old_names:
            vector = handle
    return vector, steps


def _add_nest(
    draft: SketchBuilder, facts: BlockFacts, axis: int, axis_columns: dict[int, int]
) -> None:
    no_columns: tuple[int | None, ...] = (None,) * NUM_LEVELS
    cut_columns = tuple(axis_columns.get(level) for level in range(NUM_LEVELS))
    columns = tuple(
        cut_columns if index == axis else no_columns for index in range(len(facts.axes))
    )
    remainder_levels = tuple(
        None if index == axis else _INNER if a.is_reduction else _OUTER
        for index, a in enumerate(facts.axes)
    )
    draft.nests.append(TiledNest(facts, columns, remainder_levels, axis))
