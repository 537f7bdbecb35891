"""Blocks that follow from constants alone: they run once, when a kernel is loaded.

Their cost is no part of a run, so the features, the estimates and the filter do not see them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler.backends.backend import backend_of
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.passes.cpu.hoist_constants import constant_copies
from compiler.target.target import Target
from tuner.space.tables.nest import TiledNest


def without_packing(
    nests: Iterable[TiledNest], func: PrimFunc, scheduled: PrimFunc, target: Target
) -> list[TiledNest]:
    """Return the nests that run in each call of a kernel, with the panels that are made before.

    Args:
        nests: The nests of a sketch.
        func: The program.
        scheduled: The program under the sketch, which may copy constants.
        target: The target of the sketch.
    """
    constants = set(constant_params(func))
    if not constants or not backend_of(target).packs_constants:
        return list(nests)
    copies = {buffer.name for buffer in constant_copies(scheduled.body, constants)}
    names = copies | {buffer.name for buffer in constants}
    names |= {buffer.name for buffer in constant_copies(func.body, constants)}
    return [
        replace(
            nest,
            prepacked=frozenset(i for i in nest.packed if nest.accesses[i].buffer in names),
        )
        for nest in nests
        if nest.facts.write.buffer not in copies
    ]
