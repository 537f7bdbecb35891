"""Unroll a loop: `unroll`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.loop_kind import with_kind
from compiler.schedule.tree.tree import loop_path


def unroll(func: PrimFunc, loop: Var) -> PrimFunc:
    """Unroll a loop: write out its iterations one after another.

    Requires:
        Nothing: a loop of unknown extent is unrolled when the extent is known.

    Rewrites:
        for i in range(n):   ->   for i in T.unroll(n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If the loop does not exist.
    """
    return with_kind(func, loop_path(func, loop, refusal("unroll", func)), "unrolled")
