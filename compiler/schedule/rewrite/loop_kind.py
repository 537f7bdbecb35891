"""Change how a loop runs its iterations; shared by `parallel`, `vectorize`, `unroll` and `bind`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import (
    Buffer,
    For,
    LoopKind,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.independence import (
    IterationNest,
    has_disjoint_iterations,
    is_iteration_private,
)
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.legality.thread_reductions import thread_reduction_problem
from compiler.schedule.tree.tree import Path, loop_at, loops_below, loops_on, replace_at


def with_kind(func: PrimFunc, path: Path, kind: LoopKind, thread: str | None = None) -> PrimFunc:
    """Return the program with the kind of one loop changed."""
    return replace_at(func, path, replace(loop_at(path), kind=kind, thread=thread))


def require_concurrent(
    func: PrimFunc, path: Path, refuse: Refuse, *, is_vector: bool = False, is_thread: bool = False
) -> None:
    """Refuse if the iterations of a loop may not run at once.

    Args:
        is_vector: Whether they run in lockstep; then they can't have private buffers.
        is_thread: Whether they run on the threads of a block, which may reduce together.
    """
    loop = loop_at(path)
    name = loop.var.name
    nest = IterationNest(BlockScope.around(func, path, refuse), (loop,))
    reduced = _reduced(nest, loop, refuse, may_reduce=is_thread)
    for buffer in nest.written():
        if has_disjoint_iterations(nest, buffer) or (
            not is_vector and is_iteration_private(nest, buffer)
        ):
            continue
        touching = [site for site in nest.sites if site.touches(buffer)]
        if buffer in reduced and len(touching) == 1:
            continue
        writer = next(site for site in nest.sites if site.writes(buffer))
        reason = f"iterations of loop {name} are not proved to touch different elements of"
        raise refuse(f"{reason} {buffer.name}", writer.realize, "not_proved")
    for site in nest.sites:
        kind = site.kind_at_any_loops
        may_continue = _is_recurrence(site) or kind in ("in_place", "update")
        if may_continue and all(
            has_disjoint_iterations(nest, b) for b in site.facts.written_buffers()
        ):
            continue
        if isinstance(kind, Unclassified):
            raise refuse(kind.reason, site.realize, "block_kind")
        if kind not in ("complete", "reduction"):
            reason = f"block {site.name} adds to previous values: it is neither complete nor"
            raise refuse(f"{reason} a reduction", site.realize, "block_kind")


def _reduced(nest: IterationNest, loop: For, refuse: Refuse, *, may_reduce: bool) -> set[Buffer]:
    """Return the buffers that are reduced over a loop; refuse if that is not allowed."""
    reduced: set[Buffer] = set()
    for site in nest.sites:
        # Not simplified, because the verifier checks loops of one iteration, too.
        for iter_var, value in zip(site.block.iter_vars, site.realize.iter_values, strict=True):
            if iter_var.kind == "spatial" or loop.var not in variables(value):
                continue
            if iter_var.kind != "reduce" or not may_reduce:
                reason = f"loop {loop.var.name} binds the {iter_var.kind} iterator"
                reason = f"{reason} {iter_var.var.name} of block {site.name}"
                raise refuse(reason, site.realize, "block_kind")
            problem = thread_reduction_problem(site, loop)
            if problem is not None:
                raise refuse(problem, site.realize, "threads")
            reduced.update(site.facts.written_buffers())
    return reduced


def _is_recurrence(site: PlacedBlock) -> bool:
    """Return whether a block computes elements from earlier ones, with declared accesses only."""
    return not site.facts.hidden and any(i.kind == "scan" for i in site.block.iter_vars)


def require_no_vector_around(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop of a path is vectorized: it may contain only plain code."""
    for loop in loops_on(path):
        if loop.kind == "vectorized":
            raise refuse(f"loop {loop.var.name} is vectorized", loop, "loop_kind")


def require_plain_below(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop contains one that is parallel, vectorized or bound to threads."""
    for loop in loops_below(loop_at(path).body):
        if loop.kind in ("parallel", "vectorized", "thread_binding"):
            raise refuse(f"loop {loop.var.name} inside it is {loop.kind}", loop, "loop_kind")
