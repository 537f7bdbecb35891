"""Put a block under a loop: new loops over the part of its iterators that is wanted there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.affine import Affine
from compiler.ir.bounds import affine_bounds
from compiler.ir.nodes import (
    Block,
    BlockRealize,
    Compare,
    Expr,
    For,
    IntImm,
    IterVar,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    dtype_of,
)
from compiler.schedule.digits import Extents
from compiler.schedule.error import Refuse
from compiler.schedule.guard import conjunction
from compiler.schedule.kind import Unknown
from compiler.schedule.reduction import is_whole_reduction
from compiler.schedule.region import Span, hull
from compiler.schedule.scope import Scope
from compiler.schedule.site import Site
from compiler.schedule.tree import Path, find_loop, insert_in, loop_at, loop_path, replace_at


@dataclass(frozen=True)
class Target:
    """The loop under which a block shall stand: `path` leads to it from the root."""

    path: Path
    scope: Scope

    @property
    def loop(self) -> For:
        """The loop."""
        return loop_at(self.path)

    @property
    def sites(self) -> list[Site]:
        """The blocks under the loop."""
        return [site for site in self.scope.sites if site.is_under(self.loop)]

    def fixed(self, site: Site) -> set[Var]:
        """Return what stands still in one iteration of the loop, for a block under it."""
        inside = {loop.var for loop in site.loops_inside(self.loop)}
        return set(site.extents) - inside

    @property
    def num_children(self) -> int:
        """How many statements the loop's body is."""
        return len(self.loop.body.stmts) if isinstance(self.loop.body, Seq) else 1

    def child_of(self, site: Site) -> int:
        """Return which statement of the loop's body holds a block under it."""
        body = self.loop.body
        stmts = body.stmts if isinstance(body, Seq) else (body,)
        return next(n for n, stmt in enumerate(stmts) if site.is_under(stmt))


def require_movable(scope: Scope, site: Site) -> None:
    """Refuse unless a block computes each element from its inputs alone, whatever runs it.

    That is: it is complete, or a whole reduction; and it is the only writer of what it writes.
    """
    kind = site.kind
    if isinstance(kind, Unknown):
        raise scope.refuse(kind.reason, site.realize)
    if kind not in ("complete", "reduction"):
        reason = f"block {site.name} adds to what was there before: it can't be computed anew"
        raise scope.refuse(reason, site.realize)
    if kind == "reduction" and not is_whole_reduction(site):
        reason = f"block {site.name} is not proved to reduce each element over all points, once"
        raise scope.refuse(reason, site.realize)
    scope.require_only_writer(site)
    scope.require_outputs_finished(site)


def find_target(scope: Scope, site: Site, loop: Var) -> Target:
    """Return the loop under which a block shall stand.

    Raises:
        ScheduleError: If the loop is in another scope, is around the block, or can't hold a block
            because it, or a loop around it, is vectorized.
    """
    refuse = scope.refuse
    path = loop_path(scope.func, loop, refuse)
    if not any(stmt is scope.realize for stmt in path) or any(
        isinstance(stmt, BlockRealize) for stmt in path[len(scope.path) :]
    ):
        raise refuse(f"loop {loop.name} is not in the scope of block {site.name}", path[-1])
    if site.is_under(path[-1]):
        raise refuse(f"loop {loop.name} is around block {site.name} already", path[-1])
    require_no_vector_around(path, refuse)
    return Target(path, scope)


def require_no_vector_around(path: Path, refuse: Refuse) -> None:
    """Refuse if a loop of a path is vectorized: its lanes can't hold a block of their own."""
    for stmt in path:
        if isinstance(stmt, For) and stmt.kind == "vectorized":
            raise refuse(f"loop {stmt.var.name} is vectorized", stmt)


Wanted = dict[Var, Span | None]
"""A part of the range of iterators, by their variables; None is the whole."""


def want(wanted: Wanted, var: Var, span: Span | None) -> None:
    """Widen the wanted part of an iterator."""
    wanted[var] = hull(wanted[var], span) if var in wanted else span


def clip(iter_var: IterVar, span: Span | None) -> Span:
    """Return the span of an iterator that is wanted; the whole range where nothing is known."""
    assert isinstance(iter_var.extent, IntImm), "blocks that move have literal extents"
    size = iter_var.extent.value
    dtype = dtype_of(iter_var.var)
    if span is None or span.extent >= size:
        return Span(Affine((), 0, dtype), size)
    return Span(Affine(span.low.terms, span.low.const, dtype), span.extent)


def make_nest(
    block: Block, spans: Sequence[Span], around: Extents, *, keep_unit_loops: bool = False
) -> Stmt:
    """Return loops `ax0, ax1, ...` over the spans of a block's iterators, and the block.

    Points of the spans outside an iterator's range are left out by a predicate.

    Args:
        around: The extents of the loops that the spans name.
    """
    loops: list[tuple[Var, int]] = []
    values: list[Expr] = []
    guards: list[Expr] = []
    for iter_var, span in zip(block.iter_vars, spans, strict=True):
        value = span.low
        dtype = dtype_of(iter_var.var)
        if span.extent > 1 or keep_unit_loops:
            var = Var(f"ax{len(loops)}", dtype)
            loops.append((var, span.extent))
            value += Affine(((var, 1),), 0, dtype)
        values.append(value.to_expr())
        guards.extend(_guards(iter_var, span, values[-1], around))
    body: Stmt = BlockRealize(tuple(values), conjunction(tuple(guards)), block)
    for var, extent in reversed(loops):
        body = For(var, IntImm(extent, dtype_of(var)), body)
    return body


def _guards(iter_var: IterVar, span: Span, value: Expr, around: Mapping[Var, int]) -> list[Expr]:
    """Return the conditions that keep an iterator in its range, those that are not proved."""
    size = iter_var.extent
    assert isinstance(size, IntImm), "blocks that move have literal extents"
    dtype = dtype_of(value)
    low = affine_bounds(span.low, around)
    guards: list[Expr] = []
    if low is None or low[0] < 0:
        guards.append(Compare(">=", value, IntImm(0, dtype)))
    if low is None or low[1] + span.extent > size.value:
        guards.append(Compare("<", value, IntImm(size.value, dtype)))
    return guards


def insert_position(index: int, first: int, last: int, refuse: Refuse, at: For) -> int:
    """Return where a block goes among the statements of a loop.

    Args:
        index: -1 is the last possible position, -2 the first, others are taken as they are.
        first: The first possible position.
        last: The last possible position.
    """
    assert first <= last, "producers stand before consumers"
    if index == -1:
        return last
    if index == -2:
        return first
    if not first <= index <= last:
        raise refuse(f"index {index} is not between {first} and {last}", at)
    return index


def move(func: PrimFunc, old: Path, loop: Var, position: int, nest: Stmt) -> PrimFunc:
    """Return the program with what is at `old` removed and `nest` put into the body of a loop."""
    without = replace_at(func, old, None)
    path = find_loop(without, loop)
    assert path is not None, "the target of a move stays"
    target = loop_at(path)
    return replace_at(without, (*path, target.body), insert_in(target.body, position, nest))
