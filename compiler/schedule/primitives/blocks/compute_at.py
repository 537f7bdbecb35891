"""Move a block under a loop of its consumers: `compute_at`."""

from __future__ import annotations

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, variables, variables_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import (
    Buffer,
    Expr,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.region import Span
from compiler.schedule.index.solve import solve_sum
from compiler.schedule.legality.coverage import read_box
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import CopyLocation, require_steady_indices
from compiler.schedule.rewrite.placement import (
    ComputeLocation,
    IteratorSpans,
    clip,
    find_target,
    insert_position,
    make_nest,
    move,
    require_movable,
    widen_span,
)
from compiler.schedule.tree.tree import extents_of, loops_on


def compute_at(
    func: PrimFunc,
    block: str,
    loop: Var,
    *,
    preserve_unit_loops: bool = False,
    index: int = -1,
) -> PrimFunc:
    """Compute in each iteration of a loop the part of a block that its consumers read there.

    Args:
        preserve_unit_loops: Whether iterators with a single value get loops, too.
        index: The position among the statements of the loop: -1 is the last possible one, -2 the
            first.

    Requires:
        The block is complete, or reduces each element over all points, once, except those that a
        condition on its iterators excludes. It is the only writer of its buffers, and not an
        output. Its inputs are finished before it. It has consumers, all under the loop and after
        the block; none reads partial results. If memory says which elements they read, no block
        writes it between the position and them. The loop is in the same scope and does not contain
        the block. Neither it nor a loop around it is vectorized.

    Rewrites:
        for i in range(n):             for i_0 in range(n // f):
            B[i] = f(A[i])       ->        for ax0 in range(f):
        for i_0, i_1 in ...:                   B[i_0 * f + ax0] = f(A[i_0 * f + ax0])
            C[..] = g(B[..])               for i_1 in range(f):
                                               C[..] = g(B[..])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("compute_at", func)
    scope, site = scope_of_block(func, block, refuse)
    target = find_target(scope, site, loop)
    masks = require_movable(scope, site, may_be_masked=True)
    scope.require_local(site)
    scope.require_inputs_settled(site)
    consumers = _require_consumers_under(scope, site, target)

    spans_by_var = _needed_spans(site, consumers, target)
    loops = loops_on(target.path)
    around = {**consumers[0].extents, **extents_of(loops)}
    spans = [clip(i, spans_by_var.get(i.var)) for i in site.block.iter_vars]
    nest = make_nest(
        site.block, spans, around, loops, keep_unit_loops=preserve_unit_loops, masks=masks
    )
    last = min(target.child_of(consumer) for consumer in consumers)
    position = insert_position(index, 0, last, refuse, target.loop)
    location = CopyLocation(target.path[len(scope.path) - 1 :], position)
    require_steady_indices(scope, (span.low.to_expr() for span in spans), location, consumers)
    return move(func, scope.whole_path(site), loop, position, nest)


def _require_consumers_under(
    scope: BlockScope, site: PlacedBlock, target: ComputeLocation
) -> list[PlacedBlock]:
    name = target.loop.var.name
    consumers = scope.consumers(site)
    if not consumers:
        raise scope.refuse(f"block {site.name} has no consumers", site.realize, "structure")
    for consumer in consumers:
        if not consumer.is_under(target.loop):
            reason = f"block {consumer.name} reads what block {site.name} writes, but is not under"
            reason = f"{reason} loop {name}, which requires all the consumers"
            raise scope.refuse(reason, consumer.realize, "dependence")
    if scope.position(site) > scope.position(target.sites[0]):
        raise scope.refuse(f"block {site.name} comes after loop {name}", site.realize, "dependence")
    return consumers


def _needed_spans(
    site: PlacedBlock, consumers: list[PlacedBlock], target: ComputeLocation
) -> IteratorSpans:
    """Return the part of the block's iterators that computes the elements that consumers read."""
    sizes = {i.var: extent_or_unknown(i.extent) for i in site.block.iter_vars}
    sizes = {var: size for var, size in sizes.items() if size > 1}
    spans: IteratorSpans = {}
    for write in site.facts.writes:
        together = _together(target, write.buffer)
        for consumer in consumers:
            fixed = target.fixed(consumer) - together
            extents = {**consumer.extents, **extents_of(loops_on(target.path))}
            for read in consumer.facts.reads:
                if read.buffer != write.buffer:
                    continue
                box = read_box(consumer, read, fixed)
                for index, span in zip(write.indices, box, strict=True):
                    parts = _solved(index, write, span, sizes, extents)
                    for var, part in parts.items():
                        widen_span(spans, var, part)
    return spans


def _solved(
    index: Expr, write: BlockAccess, span: Span | None, sizes: Extents, extents: Extents
) -> dict[Var, Span | None]:
    """Return the parts of the iterators for which a block writes at an index in a span."""
    form = normal(index, {**sizes, **write.inner})
    inner = tuple((a, c) for a, c in form.terms if variables(a) <= write.inner.keys())
    outer = tuple(term for term in form.terms if term not in inner)
    interval = affine_bounds(Affine(inner, 0), write.inner)
    if span is None or interval is None or interval[0] < 0:
        return {var: None for var in variables_of(form) if var in sizes}
    outer_form = Affine(outer, form.const, form.dtype)
    return solve_sum(outer_form, span, sizes, extents, interval[1] + 1)


def _together(target: ComputeLocation, buffer: Buffer) -> set[Var]:
    """Return the loops of threads around a target that see the same copy of a buffer.

    Any of these threads may read what another computes, so each computes all that they read.
    """
    if buffer.scope.split(".")[0] != "shared":
        return set()
    return {
        loop.var
        for loop in loops_on(target.path)
        if loop.thread is not None and not loop.thread.startswith("blockIdx")
    }
