"""The rule for transforms: blocks whose formula depends on the position in a small matrix."""

from __future__ import annotations

from compiler.ir.core.nodes import Compare, Conditional, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, BlockPosition, sites
from tuner.space.rules.cpu.copy_tiles import schedule_copy
from tuner.space.rules.cpu.transform_strips import (
    Choices,
    StripScheduler,
    TransformChain,
    find_chains,
)
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_CHOICES = 8
"""Maximum extent of an axis that selects a formula: Winograd's tiles are 4 to 8 wide."""


class UnrolledChoices:
    """Unrolls the axes that select a formula, around a loop over a few vectors.

        for i in range(6):                             for x, c0 in ...:  # parallel
            for x, c in ...:                   ->          for i in range(6):  # unrolled
                B[i, x, c] = f0 if i == 0                      for c1 in ...:  # vectorized
                        else f1 if i == 1 ...                      B[i, x, c] = ...

    All formulas share their loads, and no condition is evaluated at run time. The rule samples no
    decisions. A program with such blocks has many steps, as Winograd's convolution does. Chains of
    them, with the copies between them, are computed strip by strip, so that only the product is
    searched.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule the transforms of a program and the copies beside them."""
        choices_by_block = {site.block.name: _choices(site) for site in sites(draft.schedule.func)}
        if not any(choices_by_block.values()):
            return [draft]
        choices = {name: axes for name, axes in choices_by_block.items() if axes}
        strips = [
            _compute_in_strips(draft, chain, choices) for chain in find_chains(draft, choices)
        ]
        for around in strips:  # each step after the first parallel loop is checked for races
            draft.parallelize(around)
        for name, facts in draft.block_facts().items():
            if name in draft.scheduled or facts.is_reduction:
                continue
            if choices_by_block.get(name):
                _unroll(draft, facts, choices_by_block[name])
            elif facts.flops_per_point == 0 and len(facts.reads) == 1:
                schedule_copy(draft, facts)
        return [draft]


def _compute_in_strips(
    draft: SketchBuilder, chain: TransformChain, choices: Choices
) -> list[LoopRV]:
    """Schedule a chain; return the loops over its strips.

    If its blocks can't be computed together, leave them as they are, and return no loops.
    """
    schedule, scheduled = draft.schedule.copy(), set(draft.scheduled)
    strips = StripScheduler(draft, chain, choices)
    try:
        strips.run()
    except ScheduleError:
        draft.schedule, draft.scheduled = schedule, scheduled
        return []
    return strips.around


def _choices(site: BlockPosition) -> list[int]:
    """Return the axes of a block that select its formula."""
    tested: set[Var] = set()
    for node in walk(site.block.body):
        if isinstance(node, Conditional):
            match node.condition:
                case Compare("==", Var() as var, IntImm()):
                    tested.add(var)
                case _:
                    pass
    return [
        index
        for index, iterator in enumerate(site.block.iter_vars)
        if iterator.var in tested
        and isinstance(iterator.extent, IntImm)
        and iterator.extent.value <= MAX_CHOICES
    ]


def _unroll(draft: SketchBuilder, facts: BlockFacts, choices: list[int]) -> None:
    schedule = draft.schedule
    vector = facts.vector_axis
    if vector is None or vector in choices:
        return
    loops = draft.loops(facts.name)
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    extent = facts.axes[vector].extent
    outer = [loop for index, loop in enumerate(loops) if index not in (vector, *choices)]
    inner = loops[vector]
    if extent % lanes == 0 and extent > lanes:
        first, inner = schedule.split(inner, [None, lanes])
        outer.append(first)
    schedule.reorder(*outer, *(loops[index] for index in choices), inner)
    for index in choices:
        schedule.unroll(loops[index])
    schedule.vectorize(inner)
    if outer:
        draft.parallelize(outer)
    draft.scheduled.add(facts.name)
