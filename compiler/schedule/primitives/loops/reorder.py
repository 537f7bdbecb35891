"""Reorder nested loops: `reorder`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import (
    For,
    Stmt,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.independence import (
    IterationNest,
    has_disjoint_iterations,
    is_iteration_private,
    reordering_problem,
)
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import Path, loop_path, replace_at


def reorder(func: PrimFunc, loops: Sequence[Var]) -> PrimFunc:
    """Reorder nested loops; other loops between them keep their positions.

    Requires:
        The loops are different loops of one chain: from the outermost to the innermost, each loop
        is the whole body of the one around it. No extent depends on a loop that moves inside.
        The iterations may run in the new order (see `compiler.schedule.legality.independence`):
        the elements that a block writes differ by the reordered loops, or stay within an
        iteration, or are a commutative reduction. The blocks have spatial and reduction iterators
        only.

    Rewrites:
        for i, j in T.grid(n, m):   ->   for j, i in T.grid(m, n):
            body(i, j)                       body(i, j)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reorder", func)
    path, chain = _chain(func, loops, refuse)
    new_order = iter(loops)
    by_var = {loop.var: loop for loop in chain}
    order = [by_var[next(new_order)] if loop.var in loops else loop for loop in chain]
    if order == chain:
        return func
    _require_extents_known(order, refuse)
    _require_any_order(IterationNest(BlockScope.around(func, path, refuse), tuple(chain)), order)
    body: Stmt = chain[-1].body
    for loop in reversed(order):
        body = replace(loop, body=body)
    return replace_at(func, path[: len(path) - len(chain) + 1], body)


def _chain(func: PrimFunc, loops: Sequence[Var], refuse: Refuse) -> tuple[Path, list[For]]:
    """Return the path to the innermost of the loops, and the chain from the outermost down."""
    if len(set(loops)) < len(loops):
        names = ", ".join(var.name for var in loops)
        raise refuse(f"a loop is given twice: {names}", func, "invalid_argument")
    paths = [loop_path(func, var, refuse) for var in loops]
    deepest = max(paths, key=len)
    first = min(map(len, paths)) - 1
    for var, path in zip(loops, paths, strict=True):
        if any(a is not b for a, b in zip(deepest, path, strict=False)):
            raise refuse(
                f"loop {var.name} is not in one chain with the others", path[-1], "structure"
            )
    chain: list[For] = []
    for stmt in deepest[first:]:
        if not isinstance(stmt, For):
            around = chain[-1]
            raise refuse(
                f"loop {around.var.name} holds more than the next loop", around, "structure"
            )
        chain.append(stmt)
    return deepest, chain


def _require_extents_known(order: Sequence[For], refuse: Refuse) -> None:
    """Refuse if the extent of a loop depends on one inside it."""
    for number, loop in enumerate(order):
        inside = variables(loop.extent) & {other.var for other in order[number + 1 :]}
        if inside:
            names = ", ".join(sorted(var.name for var in inside))
            raise refuse(
                f"the extent of loop {loop.var.name} depends on loop {names}", loop, "loop_kind"
            )


def _require_any_order(nest: IterationNest, order: Sequence[For]) -> None:
    """Refuse if another order of the loops may change the result."""
    refuse = nest.scope.refuse
    for site in nest.sites:
        for iter_var in site.block.iter_vars:
            if iter_var.kind not in ("spatial", "reduce"):
                subject = f"the {iter_var.kind} iterator {iter_var.var.name}"
                raise refuse(f"block {site.name} has {subject}", site.realize, "block_kind")
    for buffer in nest.written():
        if has_disjoint_iterations(nest, buffer) or is_iteration_private(nest, buffer):
            continue
        reason = reordering_problem(nest, buffer, [loop.var for loop in order])
        if reason is not None:
            writer = next(site for site in nest.sites if site.writes(buffer))
            raise refuse(reason, writer.realize, "not_proved")
