"""Blocks that share a loop over the steps of a recurrence, such as those of an LSTM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess, sites, step_facts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cpu.chains.panels import copy_columns
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.sketch_builder import SketchBuilder

HEIGHTS = (4, 2, 1, 8, 6, 3, 5, 7)
"""Options for the rows of a register tile. Chosen."""
VECTORS = (2, 4, 1, 3, 6, 8)
"""Options for the vectors of a row of a register tile. Chosen."""
STEPS = (2, 4, 1)
"""Options for the unrolled steps of a sum. Chosen."""
MIN_SHARED_POINTS = 1 << 20
"""Multiply-adds of a step that several cores share: fewer take less time than some launches of
threads. Chosen.
"""
_COLUMNS, _TILE, _INNER, _UNROLLED, _REGISTERS = 1, 3, 4, 5, 6


@dataclass(frozen=True)
class _StateProduct:
    """A product of the states before a step with weights that all steps share.

    Attributes:
        facts: The block; its first axis is the step.
        weights: The access to the weights.
        row: The axis of a state of the batch.
        column: The axis of the weights' columns.
        step: The axis of the sum.
    """

    facts: BlockFacts
    weights: TensorAccess
    row: int
    column: int
    step: int


def recurrent_steps(draft: SketchBuilder) -> SketchBuilder | None:
    """Return a fork with the blocks of all recurrences scheduled; None if there is none.

        for t in ...:                              WP = W  # in panels, once
            for i, j, k: S[t, i, j] +=     ->      for t in ...:
                H[t - 1, i, k] * W[j, k]               S[t] = H[t - 1] @ WP, in register tiles
            for i, j: H[t, i, j] = ...                 H[t] = ..., vectorized along j

    The steps stay in order. Weights are transposed into panels before the first one.
    """
    by_loop = defaultdict(list)
    for site in sites(draft.schedule.func):
        if site.loops and not site.is_alone and site.block.name not in draft.scheduled:
            by_loop[site.loops[0].var].append(site)
    groups = [
        [step_facts(site) for site in group]
        for group in by_loop.values()
        if any(i.kind == "scan" for site in group for i in site.block.iter_vars)
    ]
    groups = [group for group in groups if all(group)]
    if not groups:
        return None
    fork = draft.fork("steps")
    try:
        for group in groups:
            _schedule(fork, [facts for facts in group if facts is not None])
    except ScheduleError:
        return None
    return fork


def _schedule(draft: SketchBuilder, blocks: Sequence[BlockFacts]) -> None:
    written = {facts.write.buffer for facts in blocks}
    for facts in blocks:
        product = _state_product(facts, written)
        if product is not None:
            _multiply(draft, product)
        elif not any(axis.is_reduction for axis in facts.axes[1:]):
            if facts.vector_axis == len(facts.axes) - 1:
                draft.schedule.vectorize(draft.loops(facts.name)[-1])
            draft.scheduled.add(facts.name)


def _state_product(facts: BlockFacts, written: set[str]) -> _StateProduct | None:
    """Return a product of states and weights of the usual form; None for any other block."""
    sums = [i for i, axis in enumerate(facts.axes) if axis.is_reduction]
    if not facts.is_multiply_add or sums != [3] or len(facts.axes) != 4:
        return None
    for weights in facts.reads:
        axes = [i for i in (1, 2) if weights.strides[i]]
        if weights.buffer not in written and not weights.strides[0] and len(axes) == 1:
            has_dims = all(dimension(weights, axis) is not None for axis in (axes[0], 3))
            if has_dims and facts.write.strides[axes[0]] == 1:
                return _StateProduct(facts, weights, 3 - axes[0], axes[0], 3)
    return None


def _multiply(draft: SketchBuilder, product: _StateProduct) -> None:
    """Multiply in register tiles, with the weights in panels."""
    schedule, facts, name = draft.schedule, product.facts, product.facts.name
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    rows, columns = (facts.axes[axis].extent for axis in (product.row, product.column))
    heights = padded_sizes(rows, [n for n in HEIGHTS if n <= rows])
    widths = [n * lanes for n in VECTORS if columns % (n * lanes) == 0] or [min(columns, lanes)]
    height, height_column = draft.choose(heights)
    width, width_column = draft.choose(widths)
    unrolled, step_column = draft.choose(STEPS)
    copy = schedule.cache_read(schedule.get_block(name), product.weights.buffer, "global")
    column_dim = dimension(product.weights, product.column)
    assert column_dim is not None, "the product was matched"
    copy_columns(draft, copy, product.weights, column_dim, width)
    draft.scheduled.add(draft.block_name(copy))
    loops = draft.loops(name)
    tiles, registers = schedule.split(loops[product.row], [None, height])
    panels, vector = schedule.split(loops[product.column], [None, width])
    steps, step = schedule.split(loops[product.step], [None, unrolled])
    schedule.reorder(panels, tiles, steps, step, registers, vector)
    _expand(draft, [step, registers], vector)
    if facts.points >= MIN_SHARED_POINTS * facts.axes[0].extent:
        draft.parallelize([panels])
    init = schedule.decompose_reduction(schedule.get_block(name), steps)
    *_, registers, vector = draft.loops(init)
    _expand(draft, [registers], vector)
    draft.scheduled |= {name, f"{name}_update", draft.block_name(init)}
    draft.note(
        facts,
        {
            product.row: {_REGISTERS: height_column},
            product.column: {_REGISTERS: width_column},
            product.step: {_UNROLLED: step_column},
        },
        {product.row: _TILE, product.column: _COLUMNS, product.step: _INNER},
        product.column,
    )


def _expand(draft: SketchBuilder, unrolled: Sequence[LoopRV], vector: LoopRV) -> None:
    for loop in unrolled:
        draft.schedule.unroll(loop)
    draft.schedule.vectorize(vector)
