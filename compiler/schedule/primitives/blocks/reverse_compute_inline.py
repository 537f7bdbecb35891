"""Inline a block into its producer: `reverse_compute_inline`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.error_codes import ScheduleErrorCode
from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.simplify import canonical, normal
from compiler.ir.core.nodes import (
    BlockRealize,
    Expr,
    IntImm,
    Load,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, transform_expr
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.index.range_guard import guards_of
from compiler.schedule.index.region import Span
from compiler.schedule.index.solve import iterators_at
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.coverage import runs_whole_domain, writes_whole
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.primitives.blocks.compute_inline import require_single_store
from compiler.schedule.tree.tree import drop_buffer, find_block, replace_at, without_views


def reverse_compute_inline(func: PrimFunc, block: str) -> PrimFunc:
    """Inline a block into its producer, which then computes its result; remove the block.

    Requires:
        The block and its producer are complete, store once, and are the only writers of their
        outputs; if the block only copies, its producer may be a reduction. The block runs for the
        whole ranges of its iterators, the producer writes all of its buffer. The block reads one
        element of that buffer, at indices that are in bounds at each of its points and determine
        its iterators. No other block reads the buffer, and it is not an output. Nothing accesses
        the output of the block before it. Its other inputs are finished before the producer. The
        iterations of parallel loops around the producer do not repeat its points.

    Rewrites:
        for i in range(n):             for i in range(n):
            B[i] = f(A[i])       ->        C[i] = g(f(A[i]))
        for i in range(n):
            C[i] = g(B[i])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reverse_compute_inline", func)
    func = without_views(func, block, refuse)
    scope, site = scope_of_block(func, block, refuse)
    producer = _only_producer(scope, site)
    if producer.block.match_buffers:
        func = without_views(func, producer.name, refuse)
        scope, site = scope_of_block(func, block, refuse)
        producer = _only_producer(scope, site)
    store, inner = _stores(scope, site, producer)
    values = _iterators(scope, site, producer, inner)
    func = replace_at(func, scope.whole_path(site), None)
    path = find_block(func, producer.name)
    assert path is not None, "the producer is in the program"
    func = replace_at(func, path, _fused(site, producer, store, inner, values))
    func = drop_buffer(func, scope.realize.block.name, inner.buffer)

    def refuse_merged(reason: str, _: object, code: ScheduleErrorCode, /) -> ScheduleError:
        return refuse(reason, site.realize, code)

    new_scope, merged = scope_of_block(func, producer.name, refuse_merged)
    new_scope.require_inputs_settled(merged)
    return func


def _stores(scope: BlockScope, site: PlacedBlock, producer: PlacedBlock) -> tuple[Store, Store]:
    """Return the stores of a block and of its producer, or refuse if these can't be one block."""
    store = require_single_store(scope, site)
    scope.require_only_writer(site)
    if producer.kind == "reduction" and isinstance(store.value, Load):
        inner = _sum_of(scope, producer)  # the copy of a sum takes its place
    else:
        inner = require_single_store(scope, producer)
    scope.require_local(producer)
    scope.require_only_writer(producer)
    if not runs_whole_domain(site):
        reason = f"block {site.name} is not proved to run for the whole of its iterators' ranges"
        raise scope.refuse(reason, site.realize, "not_proved")
    if not writes_whole(producer, inner.buffer):
        reason = f"block {producer.name} is not proved to write all of {inner.buffer.name}"
        raise scope.refuse(reason, producer.realize, "not_proved")
    return store, inner


def _sum_of(scope: BlockScope, producer: PlacedBlock) -> Store:
    """Return the only update of a reduction, which touches one element of its buffer, or refuse."""
    init, update = producer.block.init, producer.block.body
    if isinstance(init, Store) and isinstance(update, Store) and producer.facts.is_leaf:
        accesses = producer.facts.accesses(update.buffer)
        if init.buffer == update.buffer and all(a.indices == update.indices for a in accesses):
            return update
    raise scope.refuse(
        f"block {producer.name} does not only sum up one element", producer.realize, "block_kind"
    )


def _fused(
    site: PlacedBlock,
    producer: PlacedBlock,
    store: Store,
    inner: Store,
    values: Mapping[Var, Expr],
) -> BlockRealize:
    """Return the producer with the store of the block, of the value that it would have read."""
    indices = tuple(substitute(index, values) for index in store.indices)
    element = Load(store.buffer, indices)
    init = producer.block.init

    def of_inner(expr: Expr) -> bool:
        return isinstance(expr, Load) and expr.buffer == inner.buffer

    if isinstance(init, Store):
        init = Store(store.buffer, indices, init.value)
        value = transform_expr(inner.value, lambda e: element if of_inner(e) else None)
    else:
        read_value = substitute(store.value, values)
        value = transform_expr(read_value, lambda e: inner.value if of_inner(e) else None)
    body = Store(store.buffer, indices, value)
    block = with_regions(replace(producer.block, body=body, init=init))
    guards = _guards(site, producer, values)
    producer_conditions = conjuncts(producer.realize.predicate)
    predicate = conjunction(
        (*producer_conditions, *(guard for guard in guards if guard not in producer_conditions))
    )
    return BlockRealize(producer.realize.iter_values, predicate, block)


def _guards(site: PlacedBlock, producer: PlacedBlock, values: Mapping[Var, Expr]) -> list[Expr]:
    """Return the conditions on the producer's loops under which a point of the block runs."""
    guards: list[Expr] = []
    for iter_var in site.block.iter_vars:
        bound = substitute(values[iter_var.var], producer.bindings)
        form = canonical(bound, producer.extents)
        coarse_first = sorted(form.terms, key=lambda term: -term[1])
        value = Affine(tuple(coarse_first), form.const, form.dtype)
        span = Span(value, 1)
        guards += guards_of(value, span, iter_var.extent, producer.extents, producer.loops)
    return guards


def _only_producer(scope: BlockScope, site: PlacedBlock) -> PlacedBlock:
    """Return the only block that writes, last before it, the buffer that a block reads."""
    refuse = scope.refuse
    producers = scope.producers(site)
    if not producers:
        raise refuse(f"block {site.name} has no producer", site.realize, "structure")
    producer = producers[-1]
    position, start = scope.position(site), scope.position(producer)
    if position < start:
        raise refuse(
            f"block {producer.name} comes after block {site.name}", producer.realize, "dependence"
        )
    for buffer in producer.facts.written_buffers():
        for other in scope.readers(buffer):
            if other is not site and other is not producer:
                reason = f"block {other.name} reads {buffer.name} too"
                raise refuse(reason, other.realize, "dependence")
    for other in scope.sites[:position]:
        for buffer in site.facts.written_buffers():
            if other.touches(buffer):
                reason = f"block {other.name} touches {buffer.name}, which block {site.name} writes"
                raise refuse(f"{reason}, before it", other.realize, "dependence")
    return producer


def _iterators(
    scope: BlockScope, site: PlacedBlock, producer: PlacedBlock, inner: Store
) -> dict[Var, Expr]:
    """Return the iterators' values for which a block reads the element of the producer's store."""
    name = inner.buffer.name
    read_indices = {a.indices for a in site.facts.reads if a.buffer == inner.buffer}
    sizes = extents_of_iterators(site.block)
    indices = read_indices.pop()
    extents = extents_of_iterators(producer.block)
    values = iterators_at(site.block, indices, inner.indices, extents, inner.buffer.shape)
    if read_indices or values is None:
        reason = f"block {site.name} does not read {name} once for each point of its iterators"
        raise scope.refuse(reason, site.realize, "not_proved")
    for index, size in zip(indices, inner.buffer.shape, strict=True):
        interval = affine_bounds(normal(index, sizes), sizes)
        is_whole = any(i.var is index and i.extent == size for i in site.block.iter_vars)
        is_inside = (
            interval is not None
            and isinstance(size, IntImm)
            and 0 <= interval[0] <= interval[1] < size.value
        )
        if not is_whole and not is_inside:
            reason = f"block {site.name} may read {name} where block {producer.name} does not write"
            raise scope.refuse(f"{reason} it", site.realize, "dependence")
    return values
