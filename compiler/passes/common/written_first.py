"""Check that a scope loads from a buffer only elements that the same run has stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from compiler.ir.arith.bounds import reach
from compiler.ir.arith.facts import Facts
from compiler.ir.arith.vectors import shifted
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    Logic,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.accesses import LoweredAccess, Span, loop_extents
from compiler.passes.common.thread_loops import is_thread


def is_written_first(accesses: Iterable[LoweredAccess], depth: int) -> bool:
    """Return whether one run of the scope at `depth` loads only elements that it has stored.

    If not, a value may come from an earlier run of the scope, in which the buffer had another
    corner.
    """
    stored: list[LoweredAccess] = []
    for access in accesses:
        if access.is_store:
            stored.append(access)
            continue
        before = [s for s in stored if _is_surely_run(s, access, depth)]
        if not _is_covered(access, before, depth):
            return False
    return True


def _is_covered(load: LoweredAccess, stores: Sequence[LoweredAccess], depth: int) -> bool:
    """Return whether some stores surely wrote the box of a load.

    Either one store did, or several stores that differ in one dimension did together.
    """
    box = _parts(load, depth)
    boxes = [(_parts(store, depth), _trimmed_dimensions(store, depth)) for store in stores]
    for along in range(max(len(box), 1)):
        others = [d for d in range(len(box)) if d != along]
        fitting = [
            (parts, trimmed)
            for parts, trimmed in boxes
            if all(_covers(parts[d], box[d], load.shape[d], trimmed[d]) for d in others)
        ]
        if fitting and (
            not box
            or any(_covers(p[along], box[along], load.shape[along], t[along]) for p, t in fitting)
            or _together(box[along], [p[along] for p, _ in fitting])
        ):
            return True
    return False


def _trimmed_dimensions(store: LoweredAccess, depth: int) -> list[bool]:
    """Return whether the span of a store in each dimension may be cut by a condition.

    A condition on the loops of some indices leaves the other dimensions whole.
    """
    loops = {node.var for node in store.path if isinstance(node, For)}
    inner = {node.var for node in store.path[depth:] if isinstance(node, For)}
    index_variables = [_variables(index) for index in store.indices]
    indexing = set[Var]().union(*index_variables)
    trimmed = [False] * len(index_variables)
    for condition in store.conditions(depth):
        variables = _variables(condition)
        is_plain = variables <= loops and not any(isinstance(n, Load) for n in walk(condition))
        is_local = is_plain and bool(inner & variables) and inner & variables <= indexing
        for dim, of_index in enumerate(index_variables):
            trimmed[dim] |= not (is_local and of_index <= loops and of_index.isdisjoint(variables))
    return trimmed


def _variables(expr: Expr) -> set[Var]:
    """Return the variables of an expression that are not symbolic."""
    return {node for node in walk(expr) if isinstance(node, Var) and node.limits is None}


@dataclass(frozen=True)
class _TouchedPart:
    """What an access touches of a dimension in one run of a scope.

    Attributes:
        span: The span of the index, or None if it is unknown.
        moves: Its moves by loops of symbolic extents.
        value: The index, if its span is unknown but it keeps one value during the run.
    """

    span: Span | None
    moves: tuple[tuple[int, Expr], ...]
    value: Expr | None


def _parts(access: LoweredAccess, depth: int) -> list[_TouchedPart]:
    values = [
        index if span is None and _is_fixed(index, access, depth) else None
        for index, span in zip(access.indices, access.box(depth), strict=True)
    ]
    return list(map(_TouchedPart, access.box(depth), access.symbolic_moves(depth), values))


def _is_fixed(index: Expr, access: LoweredAccess, depth: int) -> bool:
    """Return whether an index keeps its value during one run of the scope at `depth`."""
    scope = access.path[max(depth - 1, 0)]
    named = {node.var for node in access.path[depth:] if isinstance(node, For | Let)}
    stored = {node.buffer for node in walk_stmts(scope) if isinstance(node, Store)}
    return not any(
        node in named or (isinstance(node, Load) and node.buffer in stored) for node in walk(index)
    )


def _covers(of_store: _TouchedPart, of_load: _TouchedPart, extent: Expr, is_trimmed: bool) -> bool:
    """Return whether the span of a store contains the span of a load, in one dimension.

    Indices are in bounds. So a store without a condition that is as long as the dimension covers
    all of it. A store under a condition covers the part of its span that is in bounds.
    """
    part, read, full = of_store.span, of_load.span, reach(extent, {})[1]
    if part is None:
        return of_store.value is not None and of_store == of_load
    if of_store == of_load:
        return True
    if of_store.moves:
        return _is_as_long(of_store, extent)
    if not is_trimmed and part[1] >= full:
        return True
    if read is None or (read[0] - part[0]).terms:
        return not part[0].terms and part[0].const <= 0 and part[0].const + part[1] >= full
    start = (read[0] - part[0]).const
    if not part[0].terms:
        end = min(read[0].const + read[1], full) - part[0].const
        return max(read[0].const, 0) >= part[0].const and end <= part[1]
    return start >= 0 and start + read[1] <= part[1]


def _is_as_long(part: _TouchedPart, extent: Expr) -> bool:
    """Return whether a part has at least as many values as its dimension, in any call."""
    assert part.span is not None
    length: Expr = IntImm(part.span[1])
    for scale, loop_extent in part.moves:
        # The span counts the largest number of iterations.
        most = IntImm(reach(loop_extent, {})[1])
        length = BinOp("+", length, BinOp("*", BinOp("-", loop_extent, most), IntImm(scale)))
    return all(scale > 0 for scale, _ in part.moves) and Facts({}).at_least(length, extent)


def _together(of_load: _TouchedPart, of_stores: Sequence[_TouchedPart]) -> bool:
    """Return whether consecutive spans together contain another span."""
    read = of_load.span
    if read is None:
        return False
    places = []
    for part in (p.span for p in of_stores if not p.moves):
        shift = None if part is None else part[0] - read[0]
        if part is not None and shift is not None and not shift.terms:
            places.append((shift.const, shift.const + part[1]))
    reached = 0
    for start, end in sorted(places):
        if start > reached:
            break
        reached = max(reached, end)
    return reached >= read[1]


def _is_surely_run(store: LoweredAccess, load: LoweredAccess, depth: int) -> bool:
    """Return whether a store happens in each run of the scope at `depth` that has the load.

    A condition on the loops inside the scope only trims the box of the store. So does a condition
    that is true whenever the load runs, or whenever the store is in bounds. Any other condition may
    skip the store.
    """
    inside = store.path[depth:]
    if any(isinstance(n, While) and all(n is not other for other in load.path) for n in inside):
        return False  # the loop may end before its first iteration
    conditions = store.conditions(depth)
    if not conditions:
        return True
    inner = {node.var for node in inside if isinstance(node, For)}
    if store.is_shared:
        inner |= {node.var for node in store.path if isinstance(node, For) and is_thread(node)}
    facts = Facts({})
    for var, extent in loop_extents(store.path).items():
        facts = facts.having(var, extent)
    of_load = load.conditions(depth)
    for condition in of_load:
        if inner.isdisjoint(walk(condition)):
            facts = facts.assuming(condition)
    rest = [c for c in conditions if c not in of_load and not _is_harmless(c, facts, inner)]
    if rest:
        for index, full in zip(store.indices, store.shape, strict=True):
            facts = facts.assuming(Compare(">=", index, IntImm(0, dtype_of(index))))
            facts = facts.assuming(Compare("<", index, shifted(IntImm(0, dtype_of(index)), full)))
    return all(_is_harmless(condition, facts, inner) for condition in rest)


def _is_harmless(condition: Expr, facts: Facts, inner: AbstractSet[Var]) -> bool:
    """Return whether a condition is true, or depends on some variables."""
    match condition:
        case Logic("and", lhs, rhs):
            return _is_harmless(lhs, facts, inner) and _is_harmless(rhs, facts, inner)
        case Compare(">=", lhs, rhs) if is_integer(dtype_of(lhs)):
            holds = facts.at_least(lhs, rhs)
        case Compare("<", lhs, rhs) if is_integer(dtype_of(lhs)):
            holds = facts.at_least(BinOp("-", rhs, IntImm(1, dtype_of(rhs))), lhs)
        case _:
            holds = False
    return holds or not inner.isdisjoint(walk(condition))
