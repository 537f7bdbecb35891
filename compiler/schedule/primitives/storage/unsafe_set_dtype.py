"""Store an intermediate buffer in another type: `unsafe_set_dtype`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Cast,
    Expr,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_expr, map_stmt, walk, walk_stmts
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.tree.tree import block_path, realize_at


def unsafe_set_dtype(func: PrimFunc, block: str, write_index: int, dtype: DType) -> PrimFunc:
    """Store a buffer in another type: values are converted when they are stored and loaded.

    A narrower type rounds what the program computes, or wraps it. So no search applies it, and a
    result is compared with that of the program before it. A wider type changes nothing.

    Args:
        write_index: The number of the write among those of the block.
        dtype: The new type.

    Requires:
        The block has such a write, to a buffer that the program allocates. No opaque call gets its
        storage.

    Rewrites:
        B = alloc((8,), "float32")             B = alloc((8,), "float16")
        B[i] = A[i] * 2.0               ->     B[i] = cast("float16", A[i] * 2.0)
        C[i] = B[i] + 1.0                      C[i] = cast("float32", B[i]) + 1.0

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("unsafe_set_dtype", func)
    realize = realize_at(block_path(func, block, refuse))
    buffer = region_buffer(realize.block.writes, write_index, "write", realize, refuse)
    if buffer in func.params:
        reason = f"{buffer.name} is a parameter: callers pass it as {buffer.dtype}"
        raise refuse(reason, realize, "fixed_buffer")
    changed = _with_views(func.body, buffer)
    if any(isinstance(node, Var) and node in {b.data for b in changed} for node in walk(func.body)):
        raise refuse(f"an opaque call gets the storage of {buffer.name}", realize, "fixed_buffer")
    mapping = {b: replace(b, data=Var(b.name, "handle"), dtype=dtype) for b in changed}
    body = replace_buffers(_Converted(mapping).stmt(func.body), mapping)
    assert isinstance(body, BlockRealize), "the root stays"
    return replace(func, body=body)


def _with_views(body: Stmt, buffer: Buffer) -> list[Buffer]:
    """Return a buffer, and those that are views of it."""
    views = [buffer]
    for stmt in walk_stmts(body):
        if isinstance(stmt, BlockRealize):
            views += (m.buffer for m in stmt.block.match_buffers if m.source.buffer in views)
    return views


class _Converted:
    """Converts the values that are stored to some buffers, and those that are loaded of them."""

    def __init__(self, mapping: Mapping[Buffer, Buffer]) -> None:
        self._mapping = mapping

    def stmt(self, stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, self.stmt, self._expr)
        if isinstance(new, Store) and new.buffer in self._mapping:
            value = Cast(self._mapping[new.buffer].dtype, new.value)
            return Store(new.buffer, new.indices, value)
        return new

    def _expr(self, expr: Expr) -> Expr:
        new = map_expr(expr, self._expr)
        is_changed = isinstance(new, Load) and new.buffer in self._mapping
        return Cast(new.buffer.dtype, new) if is_changed else new  # type: ignore[union-attr]
