"""The `reverse_compute_at` primitive."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.nodes import Buffer, PrimFunc, Var
from compiler.schedule.access import Access
from compiler.schedule.coverage import finished_box, runs_whole_domain
from compiler.schedule.digits import determined
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.guard import covers_range
from compiler.schedule.placement import (
    Target,
    clip,
    find_target,
    insert_position,
    make_nest,
    move,
    require_movable,
)
from compiler.schedule.region import Span
from compiler.schedule.scope import Scope, scope_of_block
from compiler.schedule.site import Site
from compiler.schedule.tree import extents_of, loops_on


def reverse_compute_at(
    func: PrimFunc,
    block: str,
    loop: Var,
    *,
    preserve_unit_loops: bool = False,
    index: int = -1,
) -> PrimFunc:
    """Compute in each iteration of a loop just what a block can make of what was produced there.

    Args:
        preserve_unit_loops: Whether iterators that take one value get a loop too.
        index: The position among the statements of the loop: -1 is the last possible one, -2 the
            first.

    Requires:
        The block is complete, or reduces each element once; it runs for the whole of its
        iterators' ranges, and is the only writer of what it writes; nothing touches that before
        it, and nothing reads partial results of it. The loop is in the same scope, before the
        block, not around it; neither it nor a loop around it is vectorized. Of the block's
        producers some are under the loop, the others before it, finished. Those under the loop
        have, after each iteration, finished a box of their output; the block reads that output
        at its own iterators; and the boxes of all iterations make each point of the block's
        iterators once, with its reduction iterators whole.

    Rewrites:
        for i_0, i_1 in ...:           for i_0 in range(n // f):
            B[..] = f(A[..])     ->        for i_1 in range(f):
        for i in range(n):                     B[..] = f(A[..])
            C[i] = g(B[i])                 for ax0 in range(f):
                                               C[i_0 * f + ax0] = g(B[i_0 * f + ax0])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reverse_compute_at", func)
    scope, site = scope_of_block(func, block, refuse)
    target = find_target(scope, site, loop)
    require_movable(scope, site)
    if not runs_whole_domain(site):
        reason = f"block {block} is not proved to run for the whole of its iterators' ranges"
        raise refuse(reason, site.realize)
    producers = _require_order(scope, site, target)

    solution = _Solution(scope, site, target, {})
    for producer in producers:
        for buffer in producer.facts.written_buffers() & site.facts.read_buffers():
            solution.add(producer, buffer)
    around = {**producers[0].extents, **extents_of(loops_on(target.path))}
    spans = [clip(i, solution.spans.get(i.var)) for i in site.block.iter_vars]
    nest = make_nest(site.block, spans, around, keep_unit_loops=preserve_unit_loops)
    first = 1 + max(target.child_of(producer) for producer in producers)
    position = insert_position(index, first, target.num_children, refuse, target.loop)
    moved = move(func, scope.whole_path(site), loop, position, nest)
    _require_exact_cover(scope, site, moved)
    return moved


def _require_order(scope: Scope, site: Site, target: Target) -> list[Site]:
    """Return the producers under the loop; refuse if the order of reads and writes would change."""
    refuse = scope.refuse
    name = target.loop.var.name
    start = scope.position(target.sites[0])
    place = scope.position(site)
    if place < start:
        raise refuse(f"block {site.name} stands before loop {name}", site.realize)
    for other in scope.sites[:place]:
        for buffer in site.facts.written_buffers():
            if other.touches(buffer):
                reason = f"block {other.name} touches {buffer.name}, which block {site.name} writes"
                raise refuse(f"{reason}, before it", other.realize)
    producers = scope.producers(site)
    under = [producer for producer in producers if producer.is_under(target.loop)]
    if not under:
        raise refuse(f"no producer of block {site.name} is under loop {name}", target.loop)
    for producer in producers:
        if producer not in under and start < scope.position(producer):
            reason = f"block {producer.name} writes what block {site.name} reads, after loop {name}"
            raise refuse(reason, producer.realize)
    return under


@dataclass
class _Solution:
    """The part of a block's iterators that one iteration of a loop makes computable."""

    scope: Scope
    site: Site
    target: Target
    spans: dict[Var, Span]

    def add(self, producer: Site, buffer: Buffer) -> None:
        """Take account of a buffer that a producer under the loop writes."""
        box = self._finished_box(producer, buffer)
        for access in self.site.facts.reads:
            if access.buffer == buffer:
                self._solve(producer, access, box)

    def _finished_box(self, producer: Site, buffer: Buffer) -> tuple[Span, ...]:
        box = finished_box(producer, buffer, self.target.fixed(producer))
        if box is None:
            name = self.target.loop.var.name
            reason = f"an iteration of loop {name} is not proved to finish a box of {buffer.name}"
            raise self.scope.refuse(f"{reason} in block {producer.name}", producer.realize)
        return box

    def _solve(self, producer: Site, access: Access, box: tuple[Span, ...]) -> None:
        refuse = self.scope.refuse
        iterators = {i.var: i for i in self.site.block.iter_vars}
        buffer = access.buffer
        for index, span, size in zip(access.indices, box, buffer.shape, strict=True):
            if covers_range(span, size):
                continue
            if not isinstance(index, Var) or index not in iterators:
                reason = f"block {self.site.name} reads {buffer.name} at other indices than its own"
                raise refuse(
                    f"{reason} iterators: which of them block {producer.name} makes computable "
                    "is not known",
                    self.site.realize,
                )
            if iterators[index].kind != "spatial":
                reason = f"the reduction of block {self.site.name} over {index.name}"
                raise refuse(f"{reason} would be cut in parts", self.site.realize)
            known = self.spans.setdefault(index, span)
            if known.extent != span.extent or (known.low - span.low) != known.low.scaled(0):
                reason = f"block {self.site.name} needs different parts of {index.name} from its"
                raise refuse(f"{reason} producers", self.site.realize)


def _require_exact_cover(scope: Scope, site: Site, moved: PrimFunc) -> None:
    """Refuse if the moved block does not run once, on finished inputs, for each of its points."""

    def refuse(reason: str, _: object) -> ScheduleError:
        return scope.refuse(reason, site.realize)

    new_scope, new = scope_of_block(moved, site.name, refuse)
    told = determined(new.values, new.extents)
    idle = [loop.var.name for loop in new.loops if loop.var not in told]
    if idle:
        reason = f"block {site.name} would run again for each iteration of loop {idle[0]}"
        raise refuse(reason, None)
    if not runs_whole_domain(new):
        reason = f"the iterations of the loop are not proved to make all of block {site.name}"
        raise refuse(reason, None)
    new_scope.require_inputs_settled(new)
