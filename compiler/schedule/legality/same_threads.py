"""Nested loops that are bound to one axis: the threads share the work of the inner loop.

    for tx in 32:  # threadIdx.x          for tx in 32:  # threadIdx.x
        for k in 8:                           for k in 8:
            for ax in 32:            ->           for ax in 32:  # threadIdx.x
                S[ax] = A[k, ax]                      S[ax] = A[k, ax]
            C[tx] += S[...]                       C[tx] += S[...]

Before, each thread does the whole work. Afterwards it does a part, and the others use the result.
So all threads must have done the same work before, and in memory that they share.
"""

from __future__ import annotations

from compiler.ir.arith.iter_map import variables, variables_of
from compiler.ir.core.nodes import For, If
from compiler.schedule.error import Refuse
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import Path, loop_at, loops_below, loops_on


def require_shareable(scope: BlockScope, path: Path, around: For) -> None:
    """Refuse if the threads of a loop may not share the iterations of a loop inside it.

    Args:
        path: The path to the inner loop.
        around: The outer loop, bound to threads.
    """
    loop, refuse = loop_at(path), scope.refuse
    if loop.extent != around.extent:
        reason = f"loops {around.var.name} and {loop.var.name} would be the same threads, but have"
        raise refuse(f"{reason} different extents", loop, "threads")
    for site in scope.sites:
        if site.is_under(loop):
            _require_same_in_all(scope, site, loop, around)


def _require_same_in_all(scope: BlockScope, site: PlacedBlock, loop: For, around: For) -> None:
    """Refuse unless a block computes the same in each thread, and in memory that all share."""
    if site.kind != "complete":
        raise scope.refuse(
            f"block {site.name} is not complete: threads can't share it", site.realize, "threads"
        )
    if around.var in _named(site):
        reason = (
            f"block {site.name} differs in each iteration of loop {around.var.name}: its threads"
        )
        raise scope.refuse(f"{reason} can't share it", site.realize, "threads")
    for buffer in site.facts.written_buffers():
        # A buffer of the scope is outside of a loop that has the scope's block below it.
        is_shared = buffer.scope.startswith("shared") and scope.is_local(buffer)
        if not is_shared or not site.is_under(around):
            reason = f"block {site.name} writes {buffer.name}, which the threads of loop"
            raise scope.refuse(f"{reason} {around.var.name} don't share", site.realize, "threads")
        if any(not other.is_under(loop) for other in scope.writers(buffer)):
            reason = f"block {site.name} is not the only one that writes {buffer.name}"
            raise scope.refuse(f"{reason}: threads can't share it", site.realize, "threads")
    for buffer in site.facts.read_buffers():
        for other in scope.writers(buffer):
            if other.is_under(around):
                reason = f"block {site.name} reads {buffer.name}, which each thread of loop"
                reason = (
                    f"{reason} {around.var.name} may see otherwise: block {other.name} writes it"
                )
                raise scope.refuse(reason, other.realize, "threads")


def _named(site: PlacedBlock) -> set[object]:
    """Return the variables that determine a block's work, and whether and how often it runs."""
    named: set[object] = set(site.facts.outside)
    for value in site.values:
        named |= variables_of(value)
    named |= variables(site.realize.predicate)
    for stmt in site.path:
        if isinstance(stmt, For):
            named |= variables(stmt.extent)
        elif isinstance(stmt, If):
            named |= variables(stmt.condition)
    return named


def require_no_shared_work(path: Path, refuse: Refuse) -> None:
    """Refuse a position at which threads share the work: only one of them would do it."""
    threads: dict[str, For] = {}
    for loop in loops_on(path):
        if loop.thread is None:
            continue
        if loop.thread in threads:
            reason = f"the threads of loop {threads[loop.thread].var.name} share what is under loop"
            raise refuse(f"{reason} {loop.var.name}", loop, "threads")
        threads[loop.thread] = loop


def require_no_new_sharing(site: PlacedBlock, path: Path, refuse: Refuse) -> None:
    """Refuse to move a block that starts threads under a loop over threads of the same axis.

    Each thread of that loop would then do only its part of the block.
    """
    around = {loop.thread: loop for loop in loops_on(path)}
    for loop in loops_below(site.block.body):
        if loop.thread is not None and loop.thread in around:
            reason = f"the threads of loop {around[loop.thread].var.name} would share the work of"
            reason = f"{reason} block {site.name}, whose loop {loop.var.name} is bound to"
            raise refuse(f"{reason} {loop.thread}, too", site.realize, "threads")
