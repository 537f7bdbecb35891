"""Replace the buffers of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    Load,
    MatchBuffer,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, map_stmt


def replace_buffers(node: Stmt, mapping: Mapping[Buffer, Buffer]) -> Stmt:
    """Replace buffers wherever they are loaded, stored, allocated or named in a region or call."""
    storage = {old.data: new.data for old, new in mapping.items()}

    def visit_expr(expr: Expr) -> Expr:
        new = map_expr(expr, visit_expr)
        if isinstance(new, Load) and new.buffer in mapping:
            return Load(mapping[new.buffer], new.indices)
        if isinstance(new, Var):
            return storage.get(new, new)
        return new

    def region(r: BufferRegion) -> BufferRegion:
        return BufferRegion(mapping[r.buffer], r.region) if r.buffer in mapping else r

    def in_block(block: Block) -> Block:
        return replace(
            block,
            reads=tuple(region(r) for r in block.reads),
            writes=tuple(region(r) for r in block.writes),
            alloc_buffers=tuple(mapping.get(b, b) for b in block.alloc_buffers),
            match_buffers=tuple(
                MatchBuffer(mapping.get(m.buffer, m.buffer), region(m.source))
                for m in block.match_buffers
            ),
        )

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, visit_expr)
        match new:
            case Store(buffer, indices, value) if buffer in mapping:
                return Store(mapping[buffer], indices, value)
            case Allocate(buffer, body) if buffer in mapping:
                return Allocate(mapping[buffer], body)
            case BlockRealize(values, predicate, block):
                return BlockRealize(values, predicate, in_block(block))
            case _:
                return new

    return visit(node)
