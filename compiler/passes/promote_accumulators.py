"""Keep in registers what a loop nest accumulates at one place in memory (scalar replacement).

    for k in range(n):                     acc = C[i]
        C[i] = C[i] + A[i, k]      ->      for k in range(n):
                                               acc = acc + A[i, k]
                                           C[i] = acc

`C[i]` may stand for a tile: unrolled and vectorized loops inside the nest span it. Without this,
every step loads and stores the tile, and the store's latency bounds the speed (Callahan, Carr and
Kennedy, "Improving register allocation for subscripted variables", PLDI 1990).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from compiler.ir.affine import Affine
from compiler.ir.dtypes import size_bytes
from compiler.ir.nodes import (
    Allocate,
    Buffer,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.visit import map_expr, map_stmt, substitute, walk, walk_stmts
from compiler.passes.accesses import collect_accesses, loop_extents, ramp_form, split_form
from compiler.passes.compact_buffers import relative_index

_EXPANDED = ("unrolled", "vectorized")


@dataclass(frozen=True, slots=True)
class _Tile:
    """What a nest accumulates: the store, the expanded loops around it, and its box."""

    store: Store
    loops: tuple[For, ...]
    corner: tuple[Affine, ...]
    extents: tuple[int, ...]


def promote_accumulators(stmt: Stmt, max_bytes: int) -> Stmt:
    """Rewrite the outermost nests that accumulate a tile of at most `max_bytes`."""
    return _visit(stmt, (), register_buffers(stmt), max_bytes)


def register_buffers(stmt: Stmt) -> set[Buffer]:
    """Return the allocated buffers whose every index is constant once loops are expanded."""
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    return {
        buffer
        for buffer, accesses in collect_accesses(stmt, allocated).items()
        if all(_is_expanded(access.path, access.indices) for access in accesses)
    }


def _is_expanded(path: tuple[Stmt, ...], indices: Iterable[Expr]) -> bool:
    expanded = {n.var for n in path if isinstance(n, For) and n.kind in _EXPANDED}
    nodes = [node for index in indices for node in walk(index)]
    return not any(
        isinstance(node, Load) or (isinstance(node, Var) and node not in expanded) for node in nodes
    )


def stores_of(stmt: Stmt) -> list[Store]:
    """Return the stores of a statement in program order."""
    return [node for node in walk_stmts(stmt) if isinstance(node, Store)]


def _visit(stmt: Stmt, outer: tuple[Stmt, ...], done: set[Buffer], max_bytes: int) -> Stmt:
    path = (*outer, stmt)
    if isinstance(stmt, For) and stmt.kind == "serial":
        for buffer in dict.fromkeys(s.buffer for s in stores_of(stmt)):
            tile = None if buffer in done else _tile(stmt, buffer, outer)
            if tile is None or prod(tile.extents) * size_bytes(buffer.dtype) > max_bytes:
                continue
            accumulator = Buffer(
                Var(f"{buffer.name}_acc", "handle"),
                tuple(IntImm(n) for n in tile.extents),
                buffer.dtype,
                "local",
            )
            promoted = _promote(stmt, buffer, tile, accumulator)
            return _visit(promoted, outer, done | {buffer, accumulator}, max_bytes)
    return map_stmt(stmt, lambda child: _visit(child, path, done, max_bytes), lambda expr: expr)


def _tile(loop: For, buffer: Buffer, outer: tuple[Stmt, ...]) -> _Tile | None:
    """Return what `loop` accumulates in `buffer`, or None if it is not one fixed tile."""
    stores = [s for s in stores_of(loop) if s.buffer == buffer]
    if len(stores) != 1 or any(loop.var in set(walk(index)) for index in stores[0].indices):
        return None
    store = stores[0]
    accesses = collect_accesses(loop, {buffer})[buffer]
    if len(accesses) < 2:
        return None
    path = accesses[0].path
    if any(a.path[-1] is not store or a.indices != store.indices for a in accesses):
        return None
    if any(isinstance(node, If) for node in path) or _is_guarded(store.value, buffer):
        return None
    loops = tuple(node for node in path if isinstance(node, For))
    if any(node.kind not in (*_EXPANDED, "serial") for node in loops):
        return None
    expanded = tuple(node for node in loops if node.kind in _EXPANDED)
    serial = {node.var for node in loops if node.kind == "serial"}
    if any(isinstance(n, Var) and n in serial for i in store.indices for n in walk(i)):
        return None
    inner, ranges = loop_extents(expanded), {**loop_extents(outer), **loop_extents(path)}
    parts = [split_form(ramp_form(index, ranges), inner) for index in store.indices]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return _Tile(store, expanded, tuple(c for c, _ in known), tuple(n for _, n in known))


def _is_guarded(value: Expr, buffer: Buffer) -> bool:
    """Tell whether a load of `buffer` happens only under a condition."""
    return any(
        isinstance(node, Load) and node.buffer == buffer
        for guard in walk(value)
        if isinstance(guard, Conditional)
        for node in walk(guard)
    )


def _promote(loop: For, buffer: Buffer, tile: _Tile, accumulator: Buffer) -> Stmt:
    relative = tuple(
        relative_index(index, corner)
        for index, corner in zip(tile.store.indices, tile.corner, strict=True)
    )

    def visit_expr(expr: Expr) -> Expr:
        new = map_expr(expr, visit_expr)
        return (
            Load(accumulator, relative) if isinstance(new, Load) and new.buffer == buffer else new
        )

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, visit_expr)
        if isinstance(new, Store) and new.buffer == buffer:
            return Store(accumulator, relative, new.value)
        return new

    indices = tile.store.indices
    load = _nest(tile.loops, Store(accumulator, relative, Load(buffer, indices)))
    store = _nest(tile.loops, Store(buffer, indices, Load(accumulator, relative)))
    return Allocate(accumulator, seq(load, visit(loop), store))


def _nest(loops: tuple[For, ...], body: Stmt) -> Stmt:
    """Wrap `body` in fresh copies of expanded loops."""
    for loop in reversed(loops):
        var = Var(loop.var.name)
        body = For(var, loop.extent, substitute(body, {loop.var: var}), loop.kind)
    return body
