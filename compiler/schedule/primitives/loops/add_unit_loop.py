"""Add a loop of one iteration: `add_unit_loop`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    For,
    IntImm,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.tree.tree import block_path, loop_path, replace_at


def add_unit_loop(func: PrimFunc, at: Var | str) -> tuple[PrimFunc, Var]:
    """Add a loop of one iteration around a loop, or around the block with a name.

    Requires:
        The block is not the root.

    Rewrites:
        for i in range(n):   ->   for u, i in T.grid(1, n):
            body(i)                   body(i)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("add_unit_loop", func)
    path = block_path(func, at, refuse) if isinstance(at, str) else loop_path(func, at, refuse)
    if len(path) == 1:
        raise refuse(f'"{at}" is the root block: no loop can enclose it', func, "structure")
    unit = Var("u")
    return replace_at(func, path, For(unit, IntImm(1), path[-1])), unit
