"""Move a block under a loop: new loops over the required part of its iterators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, variables_of
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_EXTENT
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Expr,
    For,
    IntImm,
    IterVar,
    Seq,
    Stmt,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute
from compiler.schedule.error import Refuse
from compiler.schedule.index.range_guard import guards_of
from compiler.schedule.index.region import Span, hull
from compiler.schedule.index.solve import without_units
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import masked_points
from compiler.schedule.legality.same_threads import (
    require_no_new_sharing,
    require_no_shared_work,
)
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import Path, find_loop, insert_in, loop_at, loop_path, replace_at


@dataclass(frozen=True)
class ComputeLocation:
    """The loop to move a block under: `path` leads to it from the root."""

    path: Path
    scope: BlockScope

    @property
    def loop(self) -> For:
        """Return the loop."""
        return loop_at(self.path)

    @property
    def sites(self) -> list[PlacedBlock]:
        """Return the blocks under the loop."""
        return [site for site in self.scope.sites if site.is_under(self.loop)]

    def fixed(self, site: PlacedBlock) -> set[Var]:
        """Return the variables that are fixed in one iteration of the loop, for a block in it."""
        inside = {loop.var for loop in site.loops_inside(self.loop)}
        return set(site.extents) - inside

    @property
    def num_children(self) -> int:
        """Return the number of statements in the loop's body."""
        return len(self.loop.body.stmts) if isinstance(self.loop.body, Seq) else 1

    def child_of(self, site: PlacedBlock) -> int:
        """Return the number of the statement in the loop's body that contains a block."""
        body = self.loop.body
        stmts = body.stmts if isinstance(body, Seq) else (body,)
        return next(n for n, stmt in enumerate(stmts) if site.is_under(stmt))


def require_movable(
    scope: BlockScope, site: PlacedBlock, *, may_be_masked: bool = False
) -> tuple[Expr, ...]:
    """Refuse unless a block computes each element from its inputs alone.

    That is: it is complete, or a whole reduction; and it is the only writer of its buffers.

    Args:
        may_be_masked: Whether conditions may exclude points of its reduction.

    Returns:
        The conditions on iterators that exclude points of its reduction.
    """
    kind = site.kind
    if isinstance(kind, Unclassified):
        raise scope.refuse(kind.reason, site.realize, "block_kind")
    if kind not in ("complete", "reduction"):
        reason = f"block {site.name} adds to previous values: it can't be computed again"
        raise scope.refuse(reason, site.realize, "block_kind")
    masks = masked_points(site) if kind == "reduction" else ()
    if masks is None or (masks and not may_be_masked):
        reason = f"block {site.name} is not proved to reduce each element over all points, once"
        raise scope.refuse(reason, site.realize, "not_proved")
    scope.require_only_writer(site)
    scope.require_outputs_finished(site)
    return masks


def find_target(scope: BlockScope, site: PlacedBlock, loop: Var) -> ComputeLocation:
    """Return the loop to move a block under.

    Raises:
        ScheduleError: If the loop is in another scope, is around the block, or can't contain a
            block because it, or a loop around it, is vectorized, or threads share, or would share,
            its work.
    """
    refuse = scope.refuse
    path = loop_path(scope.func, loop, refuse)
    if not any(stmt is scope.realize for stmt in path) or any(
        isinstance(stmt, BlockRealize) for stmt in path[len(scope.path) :]
    ):
        raise refuse(
            f"loop {loop.name} and block {site.name} are not in the same block scope",
            path[-1],
            "structure",
        )
    if site.is_under(path[-1]):
        raise refuse(
            f"loop {loop.name} is an ancestor of block {site.name} already", path[-1], "structure"
        )
    require_no_vector_around(path, refuse)
    require_no_shared_work(path, refuse)
    require_no_new_sharing(site, path, refuse)
    return ComputeLocation(path, scope)


def require_no_vector_around(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop of a path is vectorized: its lanes can't contain a block."""
    for stmt in path:
        if isinstance(stmt, For) and stmt.kind == "vectorized":
            raise refuse(f"loop {stmt.var.name} is vectorized", stmt, "loop_kind")


IteratorSpans = dict[Var, Span | None]
"""The required part of the range of iterators, by their variables; None for the whole range."""


def widen_span(spans: IteratorSpans, var: Var, span: Span | None) -> None:
    """Extend the required part of an iterator."""
    spans[var] = hull(spans[var], span) if var in spans else span


def clip(iter_var: IterVar, span: Span | None) -> Span:
    """Return the required span of an iterator; the whole range if unknown."""
    size = extent_or_unknown(iter_var.extent)
    dtype = dtype_of(iter_var.var)
    if span is None or span.extent >= min(size, MAX_EXTENT):
        return Span(Affine((), 0, dtype), size)
    return Span(Affine(span.low.terms, span.low.const, dtype), span.extent)


def make_nest(
    block: Block,
    spans: Sequence[Span],
    around: Extents,
    loops: Sequence[For],
    *,
    keep_unit_loops: bool = False,
    masks: Sequence[Expr] = (),
) -> Stmt:
    """Return loops `ax0, ax1, ...` over the spans of a block's iterators, and the block.

    Points of the spans outside an iterator's range are left out by a predicate.

    Args:
        around: The extents of the variables in the spans.
        loops: The loops among them.
        masks: Conditions on the iterators.
    """
    new: list[tuple[Var, Expr]] = []
    values: list[Expr] = []
    guards: list[Expr] = []
    extents = dict(around)
    for iter_var, iterator_span in zip(block.iter_vars, spans, strict=True):
        span = Span(without_units(iterator_span.low, around), iterator_span.extent)
        value = span.low
        dtype = dtype_of(iter_var.var)
        if span.extent > 1 or keep_unit_loops:
            var = Var(f"ax{len(new)}", dtype)
            is_unknown = span.extent > MAX_EXTENT
            new.append((var, iter_var.extent if is_unknown else IntImm(span.extent, dtype)))
            extents[var] = span.extent
            value += Affine(((var, 1),), 0, dtype)
        values.append(_shifted(span.low, value))
        guards.extend(guards_of(value, span, iter_var.extent, extents, loops))
    values_of = {i.var: value for i, value in zip(block.iter_vars, values, strict=True)}
    guards.extend(substitute(mask, values_of) for mask in masks)
    body: Stmt = BlockRealize(tuple(values), conjunction(tuple(guards)), block)
    for var, extent in reversed(new):
        body = For(var, extent, body)
    return body


def _shifted(low: Affine, value: Affine) -> Expr:
    """Return the value of an iterator: its first value, then the loop over the others."""
    if not low.terms or not low.const or value == low:
        return value.to_expr()
    return BinOp("+", low.to_expr(), (value - low).to_expr())


def require_serial_reductions(
    site: PlacedBlock, spans: Sequence[Span], loops: Sequence[For], refuse: Refuse
) -> None:
    """Refuse if a non-spatial iterator would take its value from a loop without order."""
    unordered = {loop.var: loop for loop in loops if loop.kind in ("parallel", "vectorized")}
    for iter_var, span in zip(site.block.iter_vars, spans, strict=True):
        for var in () if iter_var.kind == "spatial" else variables_of(span.low) & unordered.keys():
            reason = f"the {iter_var.kind} iterator {iter_var.var.name} of block {site.name} would"
            reason = f"{reason} follow loop {var.name}, which is {unordered[var].kind}"
            raise refuse(reason, unordered[var], "block_kind")


def insert_position(index: int, first: int, last: int, refuse: Refuse, at: For) -> int:
    """Return the position of a block among the statements of a loop.

    Args:
        index: -1 is the last possible position, -2 the first; other numbers are positions.
        first: The first possible position.
        last: The last possible position.
    """
    assert first <= last, "producers come before consumers"
    if index == -1:
        return last
    if index == -2:
        return first
    if not first <= index <= last:
        raise refuse(f"index {index} is not between {first} and {last}", at, "invalid_argument")
    return index


def move(func: PrimFunc, old: Path, loop: Var, position: int, nest: Stmt) -> PrimFunc:
    """Return the program with the statement at `old` removed and `nest` put into a loop's body."""
    without = replace_at(func, old, None)
    path = find_loop(without, loop)
    assert path is not None, "the target of a move stays"
    target = loop_at(path)
    return replace_at(without, (*path, target.body), insert_in(target.body, position, nest))
