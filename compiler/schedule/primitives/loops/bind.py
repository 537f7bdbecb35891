"""Bind a loop to an axis of GPU threads: `bind`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.legality.same_threads import require_shareable
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.loop_kind import (
    require_concurrent,
    require_no_vector_around,
    with_kind,
)
from compiler.schedule.tree.tree import loop_at, loop_path, loops_below, loops_on

THREAD_TAGS = (
    *(f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"),
    "vthread",
)


def bind(func: PrimFunc, loop: Var, thread: str) -> PrimFunc:
    """Bind a loop to an axis of a GPU's grid: each iteration runs on one thread.

    Requires:
        `thread` is one of `THREAD_TAGS`. No loop around or inside is bound to it already, except
        that the threads of a loop around may share the work: see
        `compiler.schedule.legality.same_threads`. The blocks below the loop are complete or
        reductions, or change elements that no other iteration touches. It binds spatial iterators
        only; the threads of a block ("threadIdx") may also reduce together, if only the reduction
        accesses its output. Different iterations access different elements of all other buffers
        that are written, or private buffers. No loop around it is vectorized.

    Rewrites:
        for i in range(n):   ->   for i in T.thread_binding(n, thread="threadIdx.x"):
            body(i)                   body(i)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("bind", func)
    path = loop_path(func, loop, refuse)
    if thread not in THREAD_TAGS:
        axes = ", ".join(THREAD_TAGS)
        raise refuse(
            f'there is no thread axis "{thread}"; the axes are: {axes}', path[-1], "not_found"
        )
    is_thread = thread.startswith("threadIdx")
    around = [other for other in loops_on(path[:-1]) if other.thread == thread]
    nested = [other for other in loops_below(loop_at(path).body) if other.thread == thread]
    for other in (*nested, *(around[1:] if is_thread else around)):
        raise refuse(f"loop {other.var.name} is already bound to {thread}", other, "loop_kind")
    require_no_vector_around(path[:-1], refuse)
    require_concurrent(func, path, refuse, is_thread=is_thread)
    if around:
        require_shareable(BlockScope.around(func, path, refuse), path, around[0])
    return with_kind(func, path, "thread_binding", thread)
