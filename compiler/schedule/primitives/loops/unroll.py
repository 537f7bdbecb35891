"""The `unroll` primitive."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.loop_kind import with_kind
from compiler.schedule.tree.tree import loop_path


def unroll(func: PrimFunc, loop: Var) -> PrimFunc:
    """Write out the iterations of a loop one after another.

    Requires:
        Nothing: a loop whose extent is not known yet is written out when it is.

    Rewrites:
        for i in range(n):   ->   for i in T.unroll(n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If there is no such loop.
    """
    return with_kind(func, loop_path(func, loop, refusal("unroll", func)), "unrolled")
