"""Start each reduction before its loops, as TVM's stages do when they are lowered."""

from __future__ import annotations

from contextlib import suppress

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import For
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import blocks


def with_separate_inits(sch: Schedule) -> Schedule:
    """Return a schedule in which each reduction that allows it has its init before its loops."""
    new = sch.copy()
    for realize in tuple(blocks(new.func)):
        if realize.block.init is None:
            continue
        reduced = {
            var
            for iterator, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if iterator.kind == "reduce"
            for var in variables(value)
        }
        handles = new.get_loops(realize.block.name)
        loops = [(loop, h) for h in handles if isinstance(loop := new.get(h), For)]
        over = [(loop, handle) for loop, handle in loops if loop.var in reduced]
        # Threads that reduce together start together.
        if over and all(loop.thread is None for loop, _ in over):
            # If it is refused, it starts in its first iteration: the same, only longer to read.
            with suppress(ScheduleError):
                new.decompose_reduction(realize.block.name, over[0][1])
    return new
