"""Permute the chunks of 16 bytes in the rows of shared buffers, so that columns hit all banks.

    S[row, column]  ->  S[row, (column // 8 ^ row % 8) * 8 + column % 8]     rows of 64 half words

Shared memory has 32 banks of 4 bytes: 128 bytes at once. `ldmatrix` reads 8 rows of 16 bytes that
lie one below the other; unpermuted, they would lie in the same banks, and be read one by one. Rows
of 64 bytes share a line with one neighbour, so that their chunks depend on `row // 2 % 4`.

A block asks for it by the annotation `permuted_layout`, as in TVM; its value does not matter. In
the lowered program the scope of the buffer says so, until its accesses are rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.arith.simplify import simplify
from compiler.ir.arith.vectors import on_base
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    Stmt,
    Var,
    static_shape,
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import map_accesses, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.device.separate_lanes import separate_lanes

KEY = "permuted_layout"
_SCOPE = "shared.swizzled"
_CHUNK_BYTES = 16
_LINE_CHUNKS = 8  # 128 bytes, all banks once


def mark_swizzled(body: Stmt) -> Stmt:
    """Mark the buffers that annotated blocks write.

    Raises:
        LoweringError: If one of them is not in shared memory.
    """
    marked: dict[Buffer, Buffer] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, BlockRealize) and dict(stmt.block.annotations).get(KEY):
            for region in stmt.block.writes:
                buffer = region.buffer
                if not is_shared_scope(buffer.scope):
                    raise LoweringError(
                        f"block {stmt.block.name} has the annotation {KEY}, but {buffer.name} is "
                        f"in {buffer.scope} memory: chunks are permuted in shared memory"
                    )
                marked[buffer] = replace(buffer, scope=_SCOPE)
    return replace_buffers(body, marked) if marked else body


def swizzle_shared(stmt: Stmt) -> Stmt:
    """Rewrite the accesses of marked buffers.

    Raises:
        LoweringError: If the rows of one do not consist of 1, 2, 4 or a multiple of 8 chunks.
    """
    marked = {
        node.buffer
        for node in walk_stmts(stmt)
        if isinstance(node, Allocate) and node.buffer.scope == _SCOPE
    }
    if not marked:
        return stmt
    for buffer in marked:
        _check(buffer)
    plain = {buffer: replace(buffer, scope="shared") for buffer in marked}
    ranges = {
        loop.var: loop.extent.value
        for loop in walk_stmts(stmt)
        if isinstance(loop, For) and isinstance(loop.extent, IntImm)
    }

    def permuted(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        return plain[buffer], (*indices[:-1], _column(buffer, indices, ranges))

    new = map_accesses(stmt, marked, permuted)
    return separate_lanes(replace_buffers(new, plain))


def _check(buffer: Buffer) -> None:
    chunks, rest = divmod(static_shape(buffer)[-1] * size_bytes(buffer.dtype), _CHUNK_BYTES)
    if rest or not (chunks in (1, 2, 4) or (chunks and chunks % _LINE_CHUNKS == 0)):
        raise LoweringError(
            f"the chunks of {buffer.name} can't be permuted: its rows have {chunks} chunks of "
            f"{_CHUNK_BYTES} bytes and {rest} bytes; expected 1, 2, 4, or a multiple of "
            f"{_LINE_CHUNKS}"
        )


def _column(buffer: Buffer, indices: tuple[Expr, ...], ranges: Mapping[Var, int]) -> Expr:
    """Return the permuted index along rows."""
    *extents, columns = static_shape(buffer)
    per_chunk = _CHUNK_BYTES // size_bytes(buffer.dtype)
    chunks = columns // per_chunk
    row: Expr = IntImm(0)
    for index, extent in zip(indices[:-1], extents, strict=True):
        row = BinOp("+", BinOp("*", row, IntImm(extent)), index)
    rows_of_line = max(1, _LINE_CHUNKS // chunks)
    key = BinOp("%", BinOp("//", row, IntImm(rows_of_line)), IntImm(min(chunks, _LINE_CHUNKS)))

    def permuted(column: Expr) -> Expr:
        chunk = BinOp("//", column, IntImm(per_chunk))
        moved = BinOp("^", simplify(chunk, ranges), simplify(key, ranges))
        inside = simplify(BinOp("%", column, IntImm(per_chunk)), ranges)
        return BinOp("+", BinOp("*", moved, IntImm(per_chunk)), inside)

    return on_base(indices[-1], permuted)
