"""Check that a scope loads from a buffer only elements that the same run has stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import covering_sources
from compiler.ir.arith.bounds import reach
from compiler.ir.arith.facts import Facts
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp, shifted
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import substitute, walk, walk_stmts
from compiler.passes.common.accesses import LoweredAccess, Span, common_path
from compiler.passes.common.thread_loops import is_thread
from compiler.passes.common.written_points import LANE, covers_points


def is_written_first(accesses: Iterable[LoweredAccess], depth: int) -> bool:
    """Return whether one run of the scope at `depth` loads only elements that it has stored.

    If not, a value may come from an earlier run of the scope, in which the buffer had another
    corner.
    """
    stored: list[LoweredAccess] = []
    for access in accesses:
        if access.is_store:
            stored.append(access)
        elif not _is_covered(access, stored, depth):
            return False
    return True


def _is_covered(load: LoweredAccess, stores: Sequence[LoweredAccess], depth: int) -> bool:
    """Return whether some stores before a load surely wrote all that it reads, in the same run.

    Loops inside the scope that are around both have one value: a store happens in the same
    iteration of them. Or it happened in the first iteration of those that its indices do not use.
    """
    sure: dict[int, list[LoweredAccess]] = {}
    for store in stores:
        common = depth if load.is_of_threads else max(depth, len(common_path([store, load])))
        if _mirrors(store, load, common):
            return True
        if _is_surely_run(store, load, common, frozenset()):
            sure.setdefault(common, []).append(store)
        elif common > depth:
            first, started = _in_first_iteration(store, depth, common)
            if started and _is_surely_run(first, load, depth, started, common):
                sure.setdefault(common, []).append(first)
    if any(_covers_box(load, group, common) for common, group in sure.items()):
        return True
    if load.is_of_threads:
        return False
    alone = _dimensions_alone(load, stores, depth)
    return covers_points(load, stores, depth, [d for d in range(len(load.shape)) if d not in alone])


def _covers_box(load: LoweredAccess, stores: Sequence[LoweredAccess], depth: int) -> bool:
    """Return whether some stores wrote the box of a load, while the loops above `depth` are fixed.

    Either one store did, or several stores that differ in one dimension did together.
    """
    box = _parts(load, depth)
    boxes = [
        (_parts(store, depth), _trimmed_dimensions(store, depth))
        for store in stores
        if store.is_of_threads or _fills_box(store, depth)
    ]
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


def _in_first_iteration(
    store: LoweredAccess, depth: int, common: int
) -> tuple[LoweredAccess, frozenset[Var]]:
    """Return a store in the first iteration of loops that its indices do not use, and these loops.

    They are those between two depths. They get one iteration.
    """
    used = set[Var]().union(*map(_variables, store.indices))
    path = list(store.path)
    started: set[Var] = set()
    for position in reversed(range(depth, common)):
        node = store.path[position]
        if isinstance(node, For) and node.var not in used:
            started.add(node.var)
            path[position] = replace(node, extent=IntImm(1))
        elif isinstance(node, If):
            inside = path[position + 1]
            if node.then is store.path[position + 1]:
                path[position] = replace(node, then=inside)
            else:
                path[position] = replace(node, otherwise=inside)
    return replace(store, path=tuple(path)), frozenset(started)


def _dimensions_alone(load: LoweredAccess, stores: Sequence[LoweredAccess], depth: int) -> set[int]:
    """Return the dimensions in which each store covers a load, whatever the others do."""
    alone = set[int]()
    read = _parts(load, depth)
    parts = [_parts(store, depth) for store in stores]
    around = {n.var for s in stores for n in common_path([s, load])[depth:] if isinstance(n, For)}
    for dim in range(len(read)):
        if all(
            _covers(of_store[dim], read[dim], load.shape[dim], False)
            and _is_alone(store, dim, depth, around)
            and _fills_box(store, depth, [dim])
            for store, of_store in zip(stores, parts, strict=True)
        ) and _is_alone(load, dim, depth, around):
            alone.add(dim)
    return alone


def _is_alone(access: LoweredAccess, dim: int, depth: int, around: AbstractSet[Var]) -> bool:
    """Return whether an index moves with loops inside a scope that nothing else depends on.

    Args:
        around: Loops that the index may not depend on.
    """
    inner = {node.var for node in access.path[depth:] if isinstance(node, For)}
    by_index = [_index_variables(access, d) for d in range(len(access.indices))]
    others = by_index[:dim] + by_index[dim + 1 :]
    used = set(around).union(*others, *map(_variables, access.conditions(depth)))
    return (inner & by_index[dim]).isdisjoint(used)


def _index_variables(access: LoweredAccess, dim: int) -> set[Var]:
    """Return the variables of a simplified index: `(i * 32 + j) // 32` has no `j` below 32."""
    form = access.forms[dim]
    if form is None or lanes_of(access.indices[dim]) > 1:
        return _variables(access.indices[dim])
    return set[Var]().union(*(_variables(atom) for atom, _ in form[0].terms))


def _fills_box(store: LoweredAccess, depth: int, dims: Sequence[int] | None = None) -> bool:
    """Return whether a store reaches each element of its box, apart from conditions.

    Args:
        dims: The dimensions of the box that count; all of them if None.
    """
    loops = {node.var for node in store.path[depth:] if isinstance(node, For)}
    inner = {var: store.extents[var] for var in loops & store.extents.keys()}
    parts: list[Affine] = []
    sizes: list[int] = []
    box = store.box(depth)
    for dim in range(len(box)) if dims is None else dims:
        form, ramp, span = store.forms[dim], as_ramp(store.indices[dim]), box[dim]
        if form is None or ramp is None or span is None:
            continue
        moving = [(a, c) for a, c in form[0].terms if not inner.keys().isdisjoint(_variables(a))]
        if ramp.lanes > 1 and ramp.stride:
            inner[LANE] = ramp.lanes
            moving.append((LANE, ramp.stride))
        parts.append(Affine(tuple(moving), 0))
        sizes.append(span[1])
    return covering_sources(parts, sizes, inner) is not None


def _is_surely_run(
    store: LoweredAccess,
    load: LoweredAccess,
    depth: int,
    started: AbstractSet[Var],
    fixed: int | None = None,
) -> bool:
    """Return whether a store happens in each run of the scope at `depth` that has the load.

    That is so under a condition that is true whenever the load runs, or whenever the element is in
    bounds: then it only keeps the store in bounds. Any other condition may skip the store.

    Args:
        store: The store.
        load: The load.
        depth: The number of nodes around the scope.
        started: Loops around both in whose first iteration the store is looked at.
        fixed: The number of nodes whose loops, except these, have one value for both.
    """
    inside = store.path[depth:]
    if any(isinstance(n, While) and all(n is not other for other in load.path) for n in inside):
        return False  # the loop may end before its first iteration
    conditions = store.conditions(depth)
    if not conditions:
        return True
    moving = inside if fixed is None else store.path[fixed:]
    inner = {node.var for node in moving if isinstance(node, For)} | started
    if store.is_of_threads:
        inner |= {node.var for node in store.path if isinstance(node, For) and is_thread(node)}
    facts = _facts_of_loops(store)
    of_load = load.conditions(depth)
    for condition in of_load:
        if inner.isdisjoint(walk(condition)):
            facts = facts.assuming(condition)
    rest = [
        condition
        for condition in conditions
        if not (condition in of_load and inner.isdisjoint(walk(condition)))
        and not _holds(condition, facts)
    ]
    if rest:
        for index, full in zip(store.indices, store.shape, strict=True):
            facts = facts.assuming(Compare(">=", index, IntImm(0, dtype_of(index))))
            facts = facts.assuming(Compare("<", index, shifted(IntImm(0, dtype_of(index)), full)))
    # The box of an access of all threads is that of the points at which its condition holds.
    return all(
        _holds(condition, facts) or (store.is_of_threads and not inner.isdisjoint(walk(condition)))
        for condition in rest
    )


def _mirrors(store: LoweredAccess, load: LoweredAccess, depth: int) -> bool:
    """Return whether a load reads what a store wrote at the same point of loops like its own.

    That holds for any indices and conditions: they are the same but for the names of loops, or
    those of the load imply those of the store.
    """
    if any(isinstance(node, While) for node in store.path[depth:]):
        return False
    loops, others = _indexing_loops(store, depth), _indexing_loops(load, depth)
    extents = [store.extents.get(var) for var in loops]
    if None in extents or extents != [load.extents.get(var) for var in others]:
        return False
    # Some indices and conditions name a loop of one iteration, others were simplified.
    units = store.unit_loops | load.unit_loops
    names = units | dict(zip(loops, others, strict=True))
    for index, other in zip(store.indices, load.indices, strict=True):
        renamed, read = substitute(index, names), substitute(other, units)
        if renamed != read and not _is_same(renamed, read, load):
            return False
    of_load = {substitute(p, units) for c in load.conditions(depth) for p in conjuncts(c)}
    of_store = (part for c in store.conditions(depth) for part in conjuncts(c))
    rest = [part for part in (substitute(p, names) for p in of_store) if part not in of_load]
    if not rest:
        return True
    facts = _facts_of_loops(load)
    for condition in of_load:
        facts = facts.assuming(condition)
    return all(_holds(part, facts) for part in rest)


def _facts_of_loops(access: LoweredAccess) -> Facts:
    facts = Facts({})
    for var, extent in access.extents.items():
        facts = facts.having(var, extent)
    return facts


def _indexing_loops(access: LoweredAccess, depth: int) -> list[Var]:
    """Return the loops inside a scope that move the indices of an access."""
    used = set[Var]().union(*map(_variables, access.indices)) - access.unit_loops.keys()
    return [n.var for n in access.path[depth:] if isinstance(n, For) and n.var in used]


def _is_same(a: Expr, b: Expr, access: LoweredAccess) -> bool:
    """Return whether two indices of one access are the same number in any iteration."""
    if lanes_of(a) > 1 or lanes_of(b) > 1:
        return False
    difference = normal(a, access.extents) - normal(b, access.extents)
    return not difference.terms and not difference.const


def _holds(condition: Expr, facts: Facts) -> bool:
    """Return whether facts imply a condition."""
    match condition:
        case Logic("and", lhs, rhs):
            return _holds(lhs, facts) and _holds(rhs, facts)
        case Compare(">=", lhs, rhs) if is_integer(dtype_of(lhs)):
            return facts.at_least(lhs, rhs)
        case Compare("==", lhs, rhs) if is_integer(dtype_of(lhs)):
            return facts.at_least(lhs, rhs) and facts.at_least(rhs, lhs)
        case Compare("<", lhs, rhs) if is_integer(dtype_of(lhs)):
            return facts.at_least(BinOp("-", rhs, IntImm(1, dtype_of(rhs))), lhs)
        case _:
            return False
