"""Compute the padding of small buffers instead of testing for it.

    for i_0 in range(7):                           for i_0 in range(7):
        allocate S[6, 37]                              allocate S[6, 37]
        for i in unrolled(6):                          for i in unrolled(6):
            if i_0*6 + i < 37:             ->              S[i, j] = f(A_copy[i, k], ...)
                S[i, j] = f(A_copy[i, k], ...)

If tiles do not divide an extent, the last tile has rows that do not exist. A buffer of one tile has
room for them. Every store to these rows is under the same guard, so no row of the result depends on
them, and they may hold anything. Without guards, sums stay in registers and reductions in lanes.
What they are computed from is zero: `padded_buffers`.

Guards stay if a row that does not exist would be loaded from beyond the end of another buffer, or
could make a division trap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.inside import are_inside
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.common.accesses import Path, collect_accesses, loop_extents, symbolic_extents

_ElementLimit = tuple[tuple[tuple[int, int], ...], Affine]
"""A guard of a buffer's elements: factors of their indices, each with its dimension, and what is
added to the sum of these products to be below zero. Panels have two dimensions for an axis.
"""


@dataclass(frozen=True, slots=True)
class _StoreGuard:
    """A part of the condition of a statement."""

    stmt: If
    condition: Compare


def drop_guards(stmt: Stmt) -> Stmt:
    """Remove the guards of allocated buffers that have room for what the guards exclude."""
    return _visit(stmt, ())


def _visit(stmt: Stmt, outer: Path) -> Stmt:
    path = (*outer, stmt)
    new = map_stmt(stmt, lambda child: _visit(child, path), lambda expr: expr)
    if not isinstance(new, Allocate) or not any(isinstance(n, If) for n in walk_stmts(new.body)):
        return new
    dropped = _dropped(new, outer)
    return Allocate(new.buffer, _without(new.body, dropped)) if dropped else new


def _dropped(allocation: Allocate, outer: Path) -> list[_StoreGuard]:
    """Return the guards that all stores to a buffer have in common, if none is needed."""
    accesses = collect_accesses(allocation.body, {allocation.buffer})[allocation.buffer]
    stores = [access.path for access in accesses if access.is_store]
    if not stores:
        return []
    inside = {node.var for path in stores for node in path if isinstance(node, For)}
    limits = [_limits(path, outer, inside) for path in stores]
    common = set(limits[0]).intersection(*limits[1:])
    guards = [[by_limit[limit] for limit in common] for by_limit in limits]
    is_safe = all(
        _is_safe(path, outer, dropped) for path, dropped in zip(stores, guards, strict=True)
    )
    return [guard for dropped in guards for guard in dropped] if common and is_safe else []


def _limits(path: Path, outer: Path, inside: set[Var]) -> dict[_ElementLimit, _StoreGuard]:
    """Return the guards of a store that compare one of its indices with an outer number."""
    store = path[-1]
    assert isinstance(store, Store), "the path of a store ends in it"
    ranges = loop_extents((*outer, *path))
    indices = [normal(index, ranges) for index in store.indices]
    limits: dict[_ElementLimit, _StoreGuard] = {}
    for guard in _guards(path):
        if not _guards_only(guard.stmt, store.buffer):
            continue
        form = normal(guard.condition.lhs, ranges) - normal(guard.condition.rhs, ranges)
        for factors, beyond in _element_forms(form, indices):
            names = {n for atom, _ in beyond.terms for n in walk(atom)}
            if inside.isdisjoint(names) and not any(isinstance(n, Load) for n in names):
                ordered = tuple(sorted(beyond.terms, key=lambda term: repr(term[0])))
                limits[factors, Affine(ordered, beyond.const, beyond.dtype)] = guard
    return limits


def _element_forms(
    form: Affine, indices: list[Affine]
) -> Iterator[tuple[tuple[tuple[int, int], ...], Affine]]:
    """Yield splits of a form into a multiple of indices and a rest: of one index, then of all."""
    for dim, index in enumerate(indices):
        if index.terms:
            yield ((dim, 1),), form - index
    factors = []
    for dim, index in enumerate(indices):
        if not index.terms:
            continue
        atom, coefficient = index.terms[0]
        factor, rest = divmod(form.coefficient(atom), coefficient)
        if factor and not rest:
            factors.append((dim, factor))
            form -= index.scaled(factor)
    if len(factors) > 1:
        yield tuple(factors), form


def _guards(path: Path) -> Iterator[_StoreGuard]:
    for node in path:
        if isinstance(node, If) and node.otherwise is None:
            for part in _parts(node.condition):
                if isinstance(part, Compare) and part.op == "<":
                    yield _StoreGuard(node, part)


def _parts(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        yield from _parts(condition.lhs)
        yield from _parts(condition.rhs)
    else:
        yield condition


def _guards_only(guard: If, buffer: Buffer) -> bool:
    """Return whether a condition is around stores to one buffer and nothing else."""
    return all(n.buffer == buffer for n in walk_stmts(guard) if isinstance(n, Store))


def _is_safe(path: Path, outer: Path, dropped: list[_StoreGuard]) -> bool:
    """Return whether a store may run although guards fail.

    Each index that the guards limit must be inside its buffer anyway. Other indices do not change
    if the guards are dropped, provided that each guard holds for some step of the loops it names.
    If one may fail for all of them, such as for a tile that blocks of tiles pad, all indices must
    be inside.
    """
    ranges = loop_extents((*outer, *path))
    inner = {node.var for node in path if isinstance(node, For)}
    limited: set[object] = set()
    for guard in dropped:
        form = normal(guard.condition.lhs, ranges) - normal(guard.condition.rhs, ranges)
        terms = [(atom, c) for atom, c in form.terms if not inner.isdisjoint(walk(atom))]
        first = affine_bounds(form - Affine(tuple(terms), 0, form.dtype), ranges)
        if not all(isinstance(atom, Var) for atom, _ in terms):
            return False
        limited |= {atom for atom, _ in terms}
        if first is None or first[1] >= 0:
            limited |= {node.var for node in (*outer, *path) if isinstance(node, For)}
    conditions = [guard.condition for guard in dropped]
    for node in path:
        parts = _parts(node.condition) if isinstance(node, If) else ()
        if any(not limited.isdisjoint(walk(part)) for part in parts if part not in conditions):
            return False
    store = path[-1]
    extents = symbolic_extents((*outer, *path))
    return all(
        _is_inside(node, limited, ranges, extents) and not may_trap(node) for node in walk(store)
    )


def _is_inside(
    access: object, limited: set[object], ranges: dict[Var, int], extents: dict[Var, Expr]
) -> bool:
    """Return whether the indices of a load or a store that vary with guards are inside."""
    if not isinstance(access, Load | Store):
        return True
    varying = [
        (index, extent)
        for index, extent in zip(access.indices, access.buffer.shape, strict=True)
        if not limited.isdisjoint(walk(index))
    ]
    part = replace(access.buffer, shape=tuple(extent for _, extent in varying))
    return are_inside([index for index, _ in varying], part, ranges, extents)


def may_trap(node: object) -> bool:
    """Return whether a node of an expression could end the process if operands hold anything."""
    match node:
        case BinOp("//" | "%" | "/", lhs, rhs):
            return is_integer(dtype_of(lhs)) and not isinstance(rhs, IntImm)
        case _:
            return False


def _without(body: Stmt, dropped: list[_StoreGuard]) -> Stmt:
    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        conditions = [guard.condition for guard in dropped if guard.stmt is stmt]
        if not conditions or not isinstance(new, If):
            return new
        remaining: Expr = TRUE
        for part in _parts(new.condition):
            if part not in conditions:
                remaining = part if remaining == TRUE else Logic("and", remaining, part)
        return new.then if remaining == TRUE else If(remaining, new.then)

    return visit(body)
