"""Store buffers in panels, as blocks request (annotation `buffer_tile`).

    A[i, k]   ->   A[i // 6, k, i % 6]        # buffer_tile=[0, 0, 6]: of write 0, axis 0, by 6

A loop over `k` that uses six neighbours along `i` in each step then reads consecutive memory.
Matrix products pack their operands in this way (Goto and van de Geijn, "Anatomy of high-performance
matrix multiplication", ACM TOMS 2008). Results do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    Allocate,
    AnnotationValue,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_accesses, walk, walk_stmts

KEY = "buffer_tile"

Tile = tuple[int, int]
"""An axis, and the number of its neighbours that lie side by side."""


def tiles_of(body: Stmt) -> dict[Buffer, Tile]:
    """Return the panels that the blocks of a program request, without the invalid ones."""
    tiles: dict[Buffer, Tile] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, BlockRealize):
            entry = _entry(dict(stmt.block.annotations).get(KEY, ()), stmt.block)
            if entry is not None:
                tiles[entry[0]] = entry[1]
    return tiles


def _entry(value: AnnotationValue, block: Block) -> tuple[Buffer, Tile] | None:
    match value:
        case (int() as index, int() as axis, int() as factor):
            pass
        case _:
            return None
    if not 0 <= index < len(block.writes) or factor < 2:
        return None
    buffer = block.writes[index].buffer
    return (buffer, (axis, factor)) if 0 <= axis < len(buffer.shape) else None


def tile_buffers(stmt: Stmt, tiles: Mapping[Buffer, Tile]) -> tuple[Stmt, dict[Buffer, Buffer]]:
    """Rewrite allocated buffers and their accesses to panels.

    Parameters stay as they are. So do buffers that are accessed by vectors of indices, or whose
    address is taken.

    Returns:
        The statement, and the new buffers by the old ones.
    """
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    allocated_tiles = {b: t for b, t in tiles.items() if b in allocated}
    if allocated_tiles:
        for buffer in _fixed(stmt, {buffer.data: buffer for buffer in allocated_tiles}):
            del allocated_tiles[buffer]
    if not allocated_tiles:
        return stmt, {}
    new = {
        buffer: replace(buffer, shape=_shape(buffer, tile))
        for buffer, tile in allocated_tiles.items()
    }
    stmt = map_accesses(
        stmt, allocated_tiles, lambda b, indices: (b, _indices(indices, allocated_tiles[b]))
    )
    return replace_buffers(stmt, new), new


def _fixed(stmt: Stmt, buffers: Mapping[Var, Buffer]) -> set[Buffer]:
    """Return the buffers with an access of other than one element."""
    fixed: set[Buffer] = set()
    for node in walk(stmt):
        match node:
            case Var() if node in buffers:
                fixed.add(buffers[node])
            case Load(buffer, indices) | Store(buffer, indices):
                if any(lanes_of(index) > 1 for index in indices) and buffer.data in buffers:
                    fixed.add(buffers[buffer.data])
            case _:
                pass
    return fixed


def _shape(buffer: Buffer, tile: Tile) -> tuple[Expr, ...]:
    axis, factor = tile
    extents = static_shape(buffer)
    other_extents = (*extents[:axis], *extents[axis + 1 :])
    return tuple(IntImm(n) for n in (-(-extents[axis] // factor), *other_extents, factor))


def _indices(indices: tuple[Expr, ...], tile: Tile) -> tuple[Expr, ...]:
    axis, factor = tile
    index = indices[axis]
    size = IntImm(factor, dtype_of(index))
    other_indices = (*indices[:axis], *indices[axis + 1 :])
    return (BinOp("//", index, size), *other_indices, BinOp("%", index, size))
