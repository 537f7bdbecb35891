"""Replace views of regions by accesses to the viewed buffers.

    V = T.match_buffer(A[i:i + 8, 0:8], (8, 8), strides=[s, 1], offset_factor=8)
    V[x, y] = s            ->            A[i + x, y] = 64

A view has the trailing dimensions of its region; the dimensions before them have extent 1. The
variables in its strides and its offset stand for values that follow from the layout of the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.arith.simplify import simplify
from compiler.ir.arith.vectors import shifted
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import symbolic_strides
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    IntImm,
    Load,
    MatchBuffer,
    Range,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, map_region, map_stmt, walk_stmts


@dataclass(frozen=True, slots=True)
class _View:
    """The target of a view: a buffer that is not a view, and a corner in it."""

    source: Buffer
    corner: tuple[Expr, ...]


def resolve_views(body: Stmt) -> Stmt:
    """Return the body of a program without views."""
    blocks = (stmt.block for stmt in walk_stmts(body) if isinstance(stmt, BlockRealize))
    if not any(block.match_buffers for block in blocks):
        return body
    return _Resolver({}, {}).stmt(body)


class _Resolver:
    """Rewrites statements in the scope of some views."""

    def __init__(self, views: Mapping[Buffer, _View], values: Mapping[Var, Expr]) -> None:
        self._views = dict(views)
        self._values = dict(values)

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, BlockRealize):
            values = tuple(self.expr(v) for v in stmt.iter_values)
            return BlockRealize(values, self.expr(stmt.predicate), self._block(stmt.block))
        new = map_stmt(stmt, self.stmt, self.expr)
        if isinstance(new, Store) and new.buffer in self._views:
            return Store(*self._place(new.buffer, new.indices), new.value)
        return new

    def expr(self, expr: Expr) -> Expr:
        new = map_expr(expr, self.expr)
        if isinstance(new, Load) and new.buffer in self._views:
            return Load(*self._place(new.buffer, new.indices))
        if isinstance(new, Var):
            return self._values.get(new, new)
        return new

    def _block(self, block: Block) -> Block:
        inner = _Resolver(self._views, self._values)
        for match in block.match_buffers:
            inner._add(match)
        return replace(
            block,
            reads=tuple(inner._region(r) for r in block.reads),
            writes=tuple(inner._region(r) for r in block.writes),
            body=inner.stmt(block.body),
            init=None if block.init is None else inner.stmt(block.init),
            match_buffers=(),
        )

    def _add(self, match: MatchBuffer) -> None:
        region = self._region(match.source)
        corner = tuple(r.minimum for r in region.region)
        view, source = match.buffer, region.buffer
        self._views[view] = _View(source, corner)
        strides = symbolic_strides(source)
        offset: Expr = IntImm(0)
        for low, stride in zip(corner, strides, strict=True):
            offset = BinOp("+", offset, BinOp("*", low, stride))
        bound = dict(zip(view.strides, strides[len(strides) - len(view.shape) :], strict=False))
        for stride_var, value in bound.items():
            if isinstance(stride_var, Var):
                self._values[stride_var] = shifted(IntImm(0, dtype_of(stride_var)), value)
        if isinstance(view.elem_offset, Var):
            dtype = dtype_of(view.elem_offset)
            self._values[view.elem_offset] = simplify(shifted(IntImm(0, dtype), offset))

    def _region(self, region: BufferRegion) -> BufferRegion:
        region = map_region(region, self.expr)
        view = self._views.get(region.buffer)
        if view is None:
            return region
        lead = len(view.corner) - len(region.region)
        ranges = [Range(low, IntImm(1)) for low in view.corner[:lead]]
        for low, r in zip(view.corner[lead:], region.region, strict=True):
            ranges.append(Range(simplify(shifted(r.minimum, low)), r.extent))
        return BufferRegion(view.source, tuple(ranges))

    def _place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        view = self._views[buffer]
        lead = len(view.corner) - len(indices)
        moved = (
            low if index == IntImm(0, dtype_of(index)) else shifted(index, low)
            for index, low in zip(indices, view.corner[lead:], strict=True)
        )
        return view.source, (*view.corner[:lead], *moved)
