"""The `unroll` primitive."""

from __future__ import annotations

from compiler.ir.nodes import IntImm, PrimFunc, Var
from compiler.schedule.error import refusal
from compiler.schedule.loop_kind import with_kind
from compiler.schedule.tree import loop_at, loop_path


def unroll(func: PrimFunc, loop: Var) -> PrimFunc:
    """Write out the iterations of a loop one after another.

    Requires:
        The extent of the loop is a literal.

    Rewrites:
        for i in range(n):   ->   for i in T.unroll(n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("unroll", func)
    path = loop_path(func, loop, refuse)
    if not isinstance(loop_at(path).extent, IntImm):
        raise refuse(f"the extent of loop {loop.name} is not a literal", path[-1])
    return with_kind(func, path, "unrolled")
