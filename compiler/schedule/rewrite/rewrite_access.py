"""Rewrite every access to one buffer: in expressions, and in the regions that blocks declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    Load,
    MatchBuffer,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_expr, map_stmt, walk_stmts

Indices: TypeAlias = tuple[Expr, ...]
Mode: TypeAlias = Literal["read", "write", "view"]
"""Whether a block declares a region as read or written."""


@dataclass(frozen=True)
class AccessRewriter:
    """Replaces `old` by `new` in programs.

    Args:
        indices: Returns the new indices of an access, given the old ones and the extents of the
            variables around it.
        region: Returns the new region of a block, given the old one, the block with its body
            rewritten, the mode, and the extents of the variables around.
    """

    old: Buffer
    new: Buffer
    indices: Callable[[Indices, Extents], Indices]
    region: Callable[[BufferRegion, Block, Mode, Extents], BufferRegion]

    def stmt(self, stmt: Stmt, extents: Extents) -> Stmt:
        """Return a statement with all accesses rewritten, including those of the blocks below it.

        Args:
            extents: The extents of the variables around the statement.
        """
        inside = {**extents, **_bound_by(stmt)}
        new = map_stmt(stmt, lambda s: self.stmt(s, inside), lambda e: self.expr(e, inside))
        match new:
            case Store(buffer, indices, value) if buffer == self.old:
                return Store(self.new, self.indices(indices, inside), value)
            case BlockRealize(values, predicate, block):
                changed = self._block(block, inside)
                return new if changed is block else BlockRealize(values, predicate, changed)
            case _:
                return new

    def expr(self, expr: Expr, extents: Extents) -> Expr:
        """Return an expression with all accesses rewritten."""
        new = map_expr(expr, lambda e: self.expr(e, extents))
        if isinstance(new, Load) and new.buffer == self.old:
            return Load(self.new, self.indices(new.indices, extents))
        return self.new.data if new is self.old.data else new

    def _block(self, block: Block, extents: Extents) -> Block:
        named = (*block.reads, *block.writes, *(m.source for m in block.match_buffers))
        if all(r.buffer != self.old for r in named) and self.old not in block.alloc_buffers:
            return block

        def region(r: BufferRegion, mode: Mode) -> BufferRegion:
            return self.region(r, block, mode, extents) if r.buffer == self.old else r

        return replace(
            block,
            reads=tuple(region(r, "read") for r in block.reads),
            writes=tuple(region(r, "write") for r in block.writes),
            alloc_buffers=tuple(self.new if b == self.old else b for b in block.alloc_buffers),
            match_buffers=tuple(
                MatchBuffer(m.buffer, region(m.source, "view")) for m in block.match_buffers
            ),
        )


def _bound_by(stmt: Stmt) -> Mapping[Var, int]:
    match stmt:
        case For(var, extent, _):
            return {var: extent_or_unknown(extent)}
        case BlockRealize(block=block):
            return {i.var: extent_or_unknown(i.extent) for i in block.iter_vars}
        case _:
            return {}


def with_views(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """Return a statement whose views of `new`, formerly of `old`, are in its memory scope."""
    renamed_buffers = {old, new}
    views: dict[Buffer, Buffer] = {}
    for node in walk_stmts(stmt):
        if isinstance(node, BlockRealize):
            for match in node.block.match_buffers:
                if match.source.buffer in renamed_buffers:
                    renamed_buffers.add(match.buffer)
                    if match.buffer.scope != new.scope:
                        views[match.buffer] = replace(match.buffer, scope=new.scope)
    return replace_buffers(stmt, views) if views else stmt
