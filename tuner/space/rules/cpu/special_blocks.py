"""The rule for reductions to several buffers at once, such as `argmax`, scans and recurrences."""

from __future__ import annotations

from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.passes.cpu.scan_in_lanes import KEY as SCAN_KEY
from compiler.schedule.error import ScheduleError
from tuner.space.analysis.block_facts import BlockFacts, sites, special_facts
from tuner.space.rules.cpu.recurrent_steps import recurrent_steps
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_VECTORS = 4
"""Vectors of each partial result: several buffers share the registers. Chosen."""
MAX_STRIP_VECTORS = 64
"""Vectors of a strip of results that stays in the first-level cache, while whole rows are read."""
MIN_LANES = 8
"""Elements of a row: fewer do not pay for the combination of the lanes. Chosen."""
_OUTER, _STEPS, _INNER, _REGISTERS = 0, 2, 4, 6


class SpecialBlocks:
    """Vectorizes these blocks along a spatial axis, or by partial results of a row.

    for i, k in ...:                    for i in ...:  # parallel
        (N[i], M[i]) = better(     ->       for k in ...:  # in lanes
            (N[i], M[i]), (k, A[i, k])          (N[i], M[i]) = better(...)
        )

    for i, k in ...:                    for i in ...:  # parallel
        B[i, k] = B[i, k - 1] + ... ->      for k in ...:  # in vectors, with a carry
                                                B[i, k] = B[i, k - 1] + ...

    The blocks of each step of a recurrence are tiled: see `recurrent_steps`.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each reduction to several buffers, each scan and each recurrence."""
        for site in sites(draft.schedule.func):
            facts = special_facts(site)
            if facts is not None and facts.name not in draft.scheduled:
                draft = _scheduled(draft, facts, has_init=site.block.init is not None)
        return [recurrent_steps(draft) or draft]


def _scheduled(draft: SketchBuilder, facts: BlockFacts, *, has_init: bool) -> SketchBuilder:
    """Return the draft with a vectorized block, or the unchanged draft if that is not possible."""
    fork = draft.fork("special")
    if draft.name[-1:] == fork.name[-1:]:
        fork.name = draft.name  # one name for all blocks
    vector = facts.vector_axis
    lane = next((i for i in reversed(range(len(facts.axes))) if _suits(facts, i)), None)
    try:
        if vector is not None and facts.axes[vector].extent > 1:
            _run_across(fork, facts, vector, has_init=has_init)
        elif lane is not None and has_init:
            _run_along(fork, facts, lane)
        elif lane == len(facts.axes) - 1 and facts.write.strides[lane] == 1:
            _scan_along(fork, facts, lane)
        elif has_init and (rows := _longest_rows(facts)) is not None:
            _run_across(fork, facts, rows, has_init=True)
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
    return axis.extent >= MIN_LANES


def _longest_rows(facts: BlockFacts) -> int | None:
    """Return the longest axis of results, whose lanes serve where rows are too short for lanes.

    65,536 rows of 4 elements: `argmax` takes 107 us on a Zen 3, where scalar code takes 1.85 ms. A
    scan is slower so (393 us, scalar code 235).
    """
    axes = [i for i, a in enumerate(facts.axes) if not a.is_reduction and a.extent >= MIN_LANES]
    return max(axes, key=lambda i: facts.axes[i].extent, default=None)


def _run_across(draft: SketchBuilder, facts: BlockFacts, vector: int, *, has_init: bool) -> None:
    """Compute neighbouring results in vector lanes; a scan keeps the order of its loops."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    extent = facts.axes[vector].extent
    widths = (lanes * n for n in (1, 2, MAX_VECTORS, MAX_STRIP_VECTORS))
    size, first = draft.cut(extent, tuple(n for n in widths if n < extent) or (extent,))
    outer, inner = schedule.split(loops[vector], [None, size])
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
        _copy_strips(draft, facts)
        init = schedule.decompose_reduction(schedule.get_block(facts.name), steps[0])
        schedule.vectorize(draft.loops(init)[-1])
    _add_nest(draft, facts, vector, {_OUTER: first, _REGISTERS: first + 1})


def _copy_strips(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Copy each finished strip of results to the output, so that partial results are registers."""
    schedule, consumers = draft.schedule, draft.consumers(facts.name)
    others = [name for name in consumers if name != facts.name and name not in draft.scheduled]
    reader = draft.block_facts().get(others[0]) if len(others) == 1 else None
    if reader is None or reader.is_reduction or not draft.is_intermediate(facts.name):
        return
    updates = draft.loops(facts.name)
    inside = 1 + sum(axis.is_reduction for axis in facts.axes)
    copy = schedule.get_block(reader.name)
    schedule.reverse_compute_at(copy, updates[-1 - inside], preserve_unit_loops=True)
    schedule.vectorize(draft.loops(copy)[-1])
    draft.scheduled.add(reader.name)


def _run_along(draft: SketchBuilder, facts: BlockFacts, lane: int) -> None:
    """Reduce each row in lanes with partial results, which are combined at its end."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    width = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    sizes = tuple(width * n for n in (1, 2, MAX_VECTORS))
    lanes, first = draft.cut(facts.axes[lane].extent, sizes)
    rows = [loops[i] for i, axis in enumerate(facts.axes) if not axis.is_reduction]
    outer = [i for i, axis in enumerate(facts.axes) if axis.is_reduction and i != lane]
    steps = [*(loops[i] for i in outer), loops[lane]]
    schedule.reorder(*rows, *steps)
    if outer and facts.runs_on(outer[-1], lane):
        steps[-2:] = [schedule.fuse(*steps[-2:])]
    schedule.annotate(steps[-1], KEY, lanes)
    if rows:
        draft.parallelize(rows)
    schedule.decompose_reduction(schedule.get_block(facts.name), steps[0])
    _add_nest(draft, facts, lane, {_INNER: first, _REGISTERS: first + 1})


def _scan_along(draft: SketchBuilder, facts: BlockFacts, lane: int) -> None:
    """Scan each row in vectors, some of them a step."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    width = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    sizes = tuple(width * n for n in (1, 2, MAX_VECTORS))
    size, first = draft.cut(facts.axes[lane].extent, sizes)
    schedule.annotate(loops[lane], SCAN_KEY, size)
    if lane and not any(axis.is_reduction for axis in facts.axes[:lane]):
        draft.parallelize(loops[:lane])
    _add_nest(draft, facts, lane, {_STEPS: first, _REGISTERS: first + 1})


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
