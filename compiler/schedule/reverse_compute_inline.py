"""The `reverse_compute_inline` primitive."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.nodes import Expr, Load, PrimFunc, Store, Var
from compiler.ir.regions import with_regions
from compiler.ir.visit import substitute, transform_expr
from compiler.schedule.compute_inline import require_elementwise_store
from compiler.schedule.coverage import runs_whole_domain, writes_whole
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.scope import Scope, scope_of_block
from compiler.schedule.site import Site
from compiler.schedule.tree import drop_buffer, find_block, realize_at, replace_at, with_block


def reverse_compute_inline(func: PrimFunc, block: str) -> PrimFunc:
    """Let the producer of a block compute what the block makes of it, and remove the block.

    Requires:
        The block and its producer are complete, store once, at their own iterators, and are the
        only writers of what they write. The block runs for the whole of its iterators' ranges,
        the producer writes all of its buffer. The block reads that buffer at its own iterators,
        all of them, each for the whole of its dimension; nobody else reads it, and it is no
        output. Nothing touches what the block writes before it. What else the block reads is
        finished before the producer.

    Rewrites:
        for i in range(n):             for i in range(n):
            B[i] = f(A[i])       ->        C[i] = g(f(A[i]))
        for i in range(n):
            C[i] = g(B[i])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reverse_compute_inline", func)
    scope, site = scope_of_block(func, block, refuse)
    store = require_elementwise_store(scope, site)
    scope.require_only_writer(site)
    producer = _only_producer(scope, site)
    inner = require_elementwise_store(scope, producer)
    scope.require_local(producer)
    scope.require_only_writer(producer)
    if not runs_whole_domain(site):
        reason = f"block {site.name} is not proved to run for the whole of its iterators' ranges"
        raise refuse(reason, site.realize)
    if not writes_whole(producer, inner.buffer):
        reason = f"block {producer.name} is not proved to write all of {inner.buffer.name}"
        raise refuse(reason, producer.realize)
    iterators = _iterators(scope, site, inner)
    values: dict[Var, Expr] = dict(zip(iterators, inner.indices, strict=True))

    def value(expr: Expr) -> Expr | None:
        is_inner = isinstance(expr, Load) and expr.buffer == inner.buffer
        return inner.value if is_inner else None

    body = Store(
        store.buffer,
        tuple(substitute(index, values) for index in store.indices),
        transform_expr(substitute(store.value, values), value),
    )
    func = replace_at(func, scope.whole_path(site), None)
    path = find_block(func, producer.name)
    assert path is not None, "the producer is in the program"
    fused = with_regions(replace(producer.block, body=body))
    func = replace_at(func, path, with_block(realize_at(path), fused))
    func = drop_buffer(func, scope.realize.block.name, inner.buffer)

    def refuse_merged(reason: str, _: object) -> ScheduleError:
        return refuse(reason, site.realize)

    new_scope, new = scope_of_block(func, producer.name, refuse_merged)
    new_scope.require_inputs_settled(new)
    return func


def _only_producer(scope: Scope, site: Site) -> Site:
    """Return the one block that writes, last before it, what a block reads."""
    refuse = scope.refuse
    producers = scope.producers(site)
    if not producers:
        raise refuse(f"block {site.name} has no producer", site.realize)
    producer = producers[-1]
    place, start = scope.position(site), scope.position(producer)
    if place < start:
        raise refuse(f"block {producer.name} stands after block {site.name}", producer.realize)
    for buffer in producer.facts.written_buffers():
        for other in scope.readers(buffer):
            if other is not site and other is not producer:
                reason = f"block {other.name} reads {buffer.name} too"
                raise refuse(reason, other.realize)
    for other in scope.sites[:place]:
        for buffer in site.facts.written_buffers():
            if other.touches(buffer):
                reason = f"block {other.name} touches {buffer.name}, which block {site.name} writes"
                raise refuse(f"{reason}, before it", other.realize)
    return producer


def _iterators(scope: Scope, site: Site, inner: Store) -> tuple[Var, ...]:
    """Return the block's iterators at which it reads the producer's buffer, by dimension."""
    extents = {i.var: i.extent for i in site.block.iter_vars}
    found: set[tuple[Var, ...]] = set()
    for access in site.facts.reads:
        if access.buffer == inner.buffer:
            found.add(tuple(i for i in access.indices if isinstance(i, Var)))
    iterators = found.pop()
    sizes = tuple(extents.get(var) for var in iterators)
    if found or len(set(iterators)) < len(extents) or sizes != inner.buffer.shape:
        reason = f"block {site.name} does not read {inner.buffer.name} once for each point of its"
        raise scope.refuse(f"{reason} iterators", site.realize)
    return iterators
