"""Keep in registers the tile of memory that a loop nest accumulates into (scalar replacement).

    for k in range(n):                     acc = C[i]
        C[i] = C[i] + A[i, k]      ->      for k in range(n):
                                               acc = acc + A[i, k]
                                           C[i] = acc

`C[i]` may stand for a tile: unrolled and vectorized loops inside the nest span it. Without the
pass, every step loads and stores the tile, and the latency of the store bounds the speed (Callahan,
Carr and Kennedy, "Improving register allocation for subscripted variables", PLDI 1990).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.accesses import collect_accesses
from compiler.passes.common.compact_buffers import relative_index
from compiler.passes.common.realize_blocks import NOTHING, in_order
from compiler.passes.cpu.accumulator_tiles import EXPANDED, Below, Tile, find_tile


def promote_accumulators(stmt: Stmt, max_bytes: int, *, is_unswitched: bool = False) -> Stmt:
    """Rewrite the outermost nests that accumulate a tile of at most `max_bytes`.

    A buffer that is in registers already gets an accumulator only if that moves its start or its
    guards out of the loop.

    Args:
        is_unswitched: Whether whole tiles have no guards any more. Then guards may stay inside of
            the loop of a partial tile, if they exclude loads from beyond the end of a buffer.
    """
    return _Promotion(register_buffers(stmt), max_bytes, is_unswitched, Below()).visit(stmt, ())


def register_buffers(stmt: Stmt) -> set[Buffer]:
    """Return the allocated buffers with only constant indices once loops are expanded."""
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    return {
        buffer
        for buffer, accesses in collect_accesses(stmt, allocated).items()
        if all(_is_expanded(access.path, access.indices) for access in accesses)
    }


def _is_expanded(path: tuple[Stmt, ...], indices: Iterable[Expr]) -> bool:
    expanded = {n.var for n in path if isinstance(n, For) and n.kind in EXPANDED}
    nodes = [node for index in indices for node in walk(index)]
    return not any(
        isinstance(node, Load) or (isinstance(node, Var) and node not in expanded) for node in nodes
    )


@dataclass(frozen=True, slots=True)
class _Promotion:
    """One run of the pass: the buffers that are in registers already, and the largest tile."""

    registers: set[Buffer]
    max_bytes: int
    is_unswitched: bool
    below: Below

    def visit(self, stmt: Stmt, outer: tuple[Stmt, ...]) -> Stmt:
        path = (*outer, stmt)
        if isinstance(stmt, For) and stmt.kind == "serial":
            for buffer in self.below.stores(stmt):
                if buffer in self.registers and not self.below.has_branches(stmt):
                    continue  # an accumulator would move neither start nor guards
                tile = find_tile(stmt, buffer, outer, self.below)
                if tile is None or not self._is_worth_it(tile, buffer):
                    continue
                accumulator = Buffer(
                    Var(f"{buffer.name}_acc", "handle"),
                    tuple(IntImm(n) for n in tile.extents),
                    buffer.dtype,
                    "local",
                )
                self.registers.add(accumulator)
                return self.visit(_promote(stmt, buffer, tile, accumulator), outer)
        return map_stmt(stmt, lambda child: self.visit(child, path), lambda expr: expr)

    def _is_worth_it(self, tile: Tile, buffer: Buffer) -> bool:
        if prod(tile.extents) * size_bytes(buffer.dtype) > self.max_bytes:
            return False
        if tile.keeps_guards and not self.is_unswitched:
            return False
        moves_guards = bool(tile.guards) and not tile.keeps_guards
        return buffer not in self.registers or moves_guards or tile.start is not None


def _promote(loop: For, buffer: Buffer, tile: Tile, accumulator: Buffer) -> Stmt:
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
        if tile.start is not None and stmt is tile.start.stmt:
            return NOTHING
        if not tile.keeps_guards and any(stmt is guard for guard in tile.guards):
            assert isinstance(stmt, If)
            return visit(stmt.then)
        if isinstance(stmt, Seq):
            return in_order(visit(child) for child in stmt.stmts)
        new = map_stmt(stmt, visit, visit_expr)
        if isinstance(new, Store) and new.buffer == buffer:
            return Store(accumulator, relative, new.value)
        return new

    indices = tile.store.indices
    load = _nest(tile, _guarded(tile, Store(accumulator, relative, Load(buffer, indices))))
    if tile.start is not None:
        value = Store(accumulator, relative, tile.start.value)
        is_safe = not any(isinstance(node, Load) for node in walk(tile.start.value))
        start = _nest(tile, value if is_safe else _guarded(tile, value))
        load = start if tile.start.condition == TRUE else If(tile.start.condition, start, load)
    store = _nest(tile, _guarded(tile, Store(buffer, indices, Load(accumulator, relative))))
    return Allocate(accumulator, seq(load, visit(loop), store))


def _guarded(tile: Tile, body: Stmt) -> Stmt:
    """Wrap `body` in the conditions of a tile."""
    for guard in reversed(tile.guards):
        body = If(guard.condition, body)
    return body


def _nest(tile: Tile, body: Stmt) -> Stmt:
    """Wrap `body` in fresh copies of the loops that span a tile."""
    for loop in reversed(tile.loops):
        var = Var(loop.var.name)
        body = For(var, loop.extent, substitute(body, {loop.var: var}), loop.kind)
    return body
