"""Change how a loop runs its iterations; shared by `parallel`, `vectorize`, `unroll` and `bind`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.nodes import LoopKind, PrimFunc
from compiler.schedule.digits import variables_of
from compiler.schedule.error import Refuse
from compiler.schedule.independence import Nest, is_apart, is_own
from compiler.schedule.scope import Scope
from compiler.schedule.tree import Path, loop_at, loops_below, loops_on, replace_at


def with_kind(func: PrimFunc, path: Path, kind: LoopKind, thread: str | None = None) -> PrimFunc:
    """Return the program with the kind of one loop changed."""
    return replace_at(func, path, replace(loop_at(path), kind=kind, thread=thread))


def require_concurrent(func: PrimFunc, path: Path, refuse: Refuse, *, is_vector: bool) -> None:
    """Refuse if the iterations of a loop may not run at once.

    Args:
        is_vector: Whether they run in lockstep; then they can't have buffers of their own.
    """
    loop = loop_at(path)
    name = loop.var.name
    nest = Nest(Scope.around(func, path, refuse), (loop,))
    for site in nest.sites:
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
            if iter_var.kind != "spatial" and loop.var in variables_of(value):
                reason = f"loop {name} binds the {iter_var.kind} iterator {iter_var.var.name}"
                raise refuse(f"{reason} of block {site.name}", site.realize)
    for buffer in nest.written():
        if is_apart(nest, buffer) or (not is_vector and is_own(nest, buffer)):
            continue
        place = next(site for site in nest.sites if site.writes(buffer))
        reason = f"iterations of loop {name} are not proved to touch different elements of"
        raise refuse(f"{reason} {buffer.name}", place.realize)


def require_no_vector_around(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop of a path is vectorized: nothing but plain code may lie inside it."""
    for loop in loops_on(path):
        if loop.kind == "vectorized":
            raise refuse(f"loop {loop.var.name} is vectorized", loop)


def require_plain_below(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop holds one that is parallel, vectorized or bound to threads."""
    for loop in loops_below(loop_at(path).body):
        if loop.kind in ("parallel", "vectorized", "thread_binding"):
            raise refuse(f"loop {loop.var.name} inside it is {loop.kind}", loop)
