"""Move a block under a loop of its producers: `reverse_compute_at`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

from compiler.error_codes import ScheduleErrorCode
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.iter_map import Extents
from compiler.ir.arith.simplify import canonical
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Buffer, Expr, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.region import Span
from compiler.schedule.index.solve import solve_splits, solve_sum
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.coverage import is_finished_for, runs_whole_domain, written_box
from compiler.schedule.legality.guard import covers_range
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import is_whole_reduction
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import CopyLocation, require_steady_indices
from compiler.schedule.rewrite.placement import (
    ComputeLocation,
    clip,
    find_target,
    insert_position,
    make_nest,
    move,
    require_movable,
    require_serial_reductions,
)
from compiler.schedule.tree.tree import extents_of, loops_on


def reverse_compute_at(
    func: PrimFunc,
    block: str,
    loop: Var,
    *,
    preserve_unit_loops: bool = False,
    index: int = -1,
) -> PrimFunc:
    """Compute in each iteration of a loop the part of a block whose inputs were produced there.

    Args:
        preserve_unit_loops: Whether iterators with a single value get loops, too.
        index: The position among the statements of the loop: -1 is the last possible one, -2 the
            first.

    Requires:
        The block is complete, or reduces each element once. It runs for the whole ranges of its
        iterators, and is the only writer of its buffers. Nothing accesses these before it, and
        nothing reads partial results of it. The loop is in the same scope, does not contain the
        block, and does not come after it if the block has producers. Neither it nor a loop around
        it is vectorized.

        Some of the block's producers are under the loop, the others are finished before it. Those
        under the loop write, in each iteration, a box of their output, and the points of the block
        that read from it form a box, too. Together these boxes cover the whole block; a reduction
        runs each point once, from the first on. If a block runs for the same points again, as under
        a reduction of its producers, the last run has finished inputs, and no block reads the
        results before.

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
        raise refuse(reason, site.realize, "not_proved")
    producers = _require_order(scope, site, target)

    solution = _Solution(scope, site, target, {})
    for producer in producers:
        for buffer in producer.facts.written_buffers() & site.facts.read_buffers():
            solution.add(producer, buffer)
    loops = loops_on(target.path)
    around = {**site.extents, **extents_of(loops)}
    spans = [clip(i, solution.spans.get(i.var)) for i in site.block.iter_vars]
    require_serial_reductions(site, spans, loops, refuse)
    nest = make_nest(site.block, spans, around, loops, keep_unit_loops=preserve_unit_loops)
    first = max((1 + target.child_of(producer) for producer in producers), default=0)
    readers = [other for other in scope.consumers(site) if other.is_under(target.loop)]
    last = min((target.child_of(reader) for reader in readers), default=target.num_children)
    position = insert_position(index, first, last, refuse, target.loop)
    location = CopyLocation(target.path[len(scope.path) - 1 :], position)
    require_steady_indices(scope, (span.low.to_expr() for span in spans), location, producers)
    moved = move(func, scope.whole_path(site), loop, position, nest)
    _require_same_outcome(scope, site, moved)
    return moved


def _require_order(
    scope: BlockScope, site: PlacedBlock, target: ComputeLocation
) -> list[PlacedBlock]:
    """Return the producers under the loop; refuse if the order of reads and writes would change."""
    refuse = scope.refuse
    name = target.loop.var.name
    start = scope.position(target.sites[0])
    position = scope.position(site)
    producers = scope.producers(site)
    if position < start and producers:
        raise refuse(f"block {site.name} comes before loop {name}", site.realize, "dependence")
    for other in scope.sites[: max(position, start)]:
        for buffer in site.facts.written_buffers():
            if other is not site and other.touches(buffer):
                reason = f"block {other.name} touches {buffer.name}, which block {site.name} writes"
                raise refuse(f"{reason}, before it", other.realize, "dependence")
    under = [producer for producer in producers if producer.is_under(target.loop)]
    if producers and not under:
        raise refuse(
            f"no producer of block {site.name} is under loop {name}", target.loop, "structure"
        )
    for producer in producers:
        if producer not in under and start < scope.position(producer):
            reason = f"block {producer.name} writes what block {site.name} reads, after loop {name}"
            raise refuse(reason, producer.realize, "dependence")
    return under


@dataclass
class _Solution:
    """The part of a block's iterators whose inputs one iteration of a loop produces."""

    scope: BlockScope
    site: PlacedBlock
    target: ComputeLocation
    spans: dict[Var, Span]

    def add(self, producer: PlacedBlock, buffer: Buffer) -> None:
        """Add the constraints of a buffer that a producer under the loop writes."""
        box = written_box(producer, buffer, self.target.fixed(producer))
        if box is None:
            name = self.target.loop.var.name
            reason = f"an iteration of loop {name} is not proved to write a box of {buffer.name}"
            raise self.scope.refuse(
                f"{reason} in block {producer.name}", producer.realize, "not_proved"
            )
        for access in self.site.facts.reads:
            if access.buffer == buffer:
                for var, span in self._solve(producer, access, box).items():
                    self._take(var, span)

    def _solve(
        self, producer: PlacedBlock, access: BlockAccess, box: tuple[Span, ...]
    ) -> dict[Var, Span]:
        """Return the parts of the iterators that read inside a box."""
        sizes = extents_of_iterators(self.site.block)
        units: dict[Var, Expr] = {v: IntImm(0, dtype_of(v)) for v, n in sizes.items() if n == 1}
        sizes = {var: size for var, size in sizes.items() if size > 1}
        extents = {**producer.extents, **extents_of(loops_on(self.target.path))}
        inner = {**sizes, **access.inner}
        forms = [canonical(substitute(i, units), inner) for i in access.indices]
        dimensions = [
            (form, span, size)
            for form, span, size in zip(forms, box, access.buffer.shape, strict=True)
            if size != IntImm(1, dtype_of(size))
        ]
        open_dimensions = [(f, s) for f, s, size in dimensions if not covers_range(s, size)]
        if not open_dimensions:
            return {}
        digit_spans = solve_splits(
            [(form, span) for form, span, _ in dimensions if form.terms], sizes
        )
        if digit_spans is not None and all(form.terms for form, _ in open_dimensions):
            return {var: span for var, span in digit_spans.items() if span.extent < sizes[var]}
        parts: dict[Var, Span] = {}
        for form, span in open_dimensions:
            form, span = _undivided(form, span, inner)  # noqa: PLW2901 - the same constraint
            solved = solve_sum(form, span, sizes, extents)
            solved_spans = {var: part for var, part in solved.items() if part is not None}
            has_gaps = all(abs(scale) > 1 for _, scale in form.terms)
            # The spans hold all points whose sums are in the span: as many are no others.
            count = prod(part.extent if part else sizes[var] for var, part in solved.items())
            is_exact = len(solved_spans) == len(solved) or count == span.extent
            if has_gaps or not solved_spans or not is_exact:
                buffer, name = access.buffer.name, self.site.name
                reason = f"block {name} reads {buffer} at other indices than its own iterators"
                reason = f"{reason}: which of them block {producer.name} makes computable"
                raise self.scope.refuse(f"{reason} is not known", self.site.realize, "not_proved")
            parts.update(solved_spans)
        return parts

    def _take(self, var: Var, span: Span) -> None:
        previous = self.spans.setdefault(var, span)
        if previous.extent != span.extent or (previous.low - span.low) != previous.low.scaled(0):
            reason = (
                f"block {self.site.name} needs different parts of {var.name} from its producers"
            )
            raise self.scope.refuse(reason, self.site.realize, "not_proved")


def _undivided(form: Affine, span: Span, extents: Extents) -> tuple[Affine, Span]:
    """Return a sum and its span where a quotient of it lies in a span.

    `v // 8` is `i` or `i + 1` where `v` is one of the 16 numbers from `i * 8` on.
    """
    match form.terms:
        case ((BinOp("//", value, IntImm(divisor)), 1),) if divisor > 0:
            start = span.low + Affine((), -form.const, span.low.dtype)
            moved = Span(start.scaled(divisor), span.extent * divisor)
            return _undivided(canonical(value, extents), moved, extents)
        case _:
            return form, span


def _require_same_outcome(scope: BlockScope, site: PlacedBlock, moved: PrimFunc) -> None:
    """Refuse unless the moved block runs for all of its points, finally on finished inputs."""

    def refuse(reason: str, _: object, code: ScheduleErrorCode, /) -> ScheduleError:
        return scope.refuse(reason, site.realize, code)

    new_scope, new = scope_of_block(moved, site.name, refuse)
    fixed_vars = determined(new.values, new.extents)
    repeating = {loop.var for loop in new.loops} - fixed_vars
    if repeating:
        _require_repeatable(new_scope, new, repeating)
    if not runs_whole_domain(new):
        reason = f"the iterations of the loop are not proved to make all of block {site.name}"
        raise refuse(reason, None, "not_proved")
    if new.kind == "reduction" and not is_whole_reduction(new):
        reason = f"block {site.name} would not reduce each element over all points, once"
        raise refuse(reason, None, "not_proved")
    new_scope.require_inputs_settled(new, repeating)
    for consumer in new_scope.consumers(new):
        if new_scope.position(consumer) < new_scope.position(new):
            raise refuse(
                f"block {consumer.name} would come before block {site.name}", None, "dependence"
            )


def _require_repeatable(scope: BlockScope, site: PlacedBlock, repeating: AbstractSet[Var]) -> None:
    """Refuse if a block's results are read before the last of several runs of the same points."""
    outermost = next(loop for loop in site.loops if loop.var in repeating)
    for consumer in scope.consumers(site):
        if consumer.is_under(outermost) and not is_finished_for(site, consumer):
            reason = (
                f"block {site.name} would run again after block {consumer.name} read its results"
            )
            raise scope.refuse(reason, consumer.realize, "dependence")
