"""Run the iterations of a loop on several threads: `parallel`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.loop_kind import (
    require_concurrent,
    require_no_vector_around,
    with_kind,
)
from compiler.schedule.tree.tree import loop_path


def parallel(func: PrimFunc, loop: Var) -> PrimFunc:
    """Run the iterations of a loop on several threads.

    Each thread gets one part, and all parts have the same size. If iterations differ in cost,
    `annotate(loop, "dynamic_partition", n)` lets each thread fetch `n` iterations at a time.

    Requires:
        The loop binds spatial iterators only. The blocks below it are complete, reductions or
        recurrences (with scan iterators). Different iterations access different elements of all
        buffers that are written, or private buffers. No loop around it is vectorized.

    Rewrites:
        for i in range(n):   ->   for i in T.parallel(n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("parallel", func)
    path = loop_path(func, loop, refuse)
    require_no_vector_around(path[:-1], refuse)
    require_concurrent(func, path, refuse)
    return with_kind(func, path, "parallel")
