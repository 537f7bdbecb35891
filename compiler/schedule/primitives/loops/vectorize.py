"""Run the iterations of a loop as vector lanes: `vectorize`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.loop_kind import (
    require_concurrent,
    require_no_vector_around,
    require_plain_below,
    with_kind,
)
from compiler.schedule.tree.tree import loop_path


def vectorize(func: PrimFunc, loop: Var) -> PrimFunc:
    """Run the iterations of a loop as lanes of vectors.

    Requires:
        The loop binds spatial iterators only. The blocks below it are complete, reductions or
        recurrences (with scan iterators). Different iterations access different elements of all
        buffers that are written. No loop around it is vectorized; none inside it is parallel,
        vectorized or bound to threads.

    Rewrites:
        for i in range(n):   ->   for i in T.vectorized(n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("vectorize", func)
    path = loop_path(func, loop, refuse)
    require_no_vector_around(path[:-1], refuse)
    require_plain_below(path, refuse)
    require_concurrent(func, path, refuse, is_vector=True)
    return with_kind(func, path, "vectorized")
