"""Store buffers in panels, as blocks request (annotation `buffer_tile`).

    A[i, k]   ->   A[i // 6, k, i % 6]        # buffer_tile=[0, 0, 6]: of write 0, axis 0, by 6

A loop over `k` that uses six neighbours along `i` in each step then reads consecutive memory.
Matrix products pack their operands in this way (Goto and van de Geijn, "Anatomy of high-performance
matrix multiplication", ACM TOMS 2008). Results do not change.

Several axes may be cut. Instructions for dot products of bytes take four neighbours along the sum:

    A[i, k]   ->   A[i // 6, k // 4, i % 6, k % 4]        # buffer_tile=[0, 0, 6, 1, 4]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.arith.simplify import simplify
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
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_accesses, walk, walk_stmts

KEY = "buffer_tile"

Tile = tuple[tuple[int, int], ...]
"""Axes, each with the number of its neighbours that lie side by side; the last axis innermost."""


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
    if not isinstance(value, tuple) or len(value) < 3 or len(value) % 2 == 0:
        return None
    numbers = [number for number in value if isinstance(number, int)]
    if len(numbers) < len(value) or not 0 <= numbers[0] < len(block.writes):
        return None
    buffer = block.writes[numbers[0]].buffer
    tile = tuple(zip(numbers[1::2], numbers[2::2], strict=True))
    axes = {axis for axis, _ in tile if 0 <= axis < len(buffer.shape)}
    factors = [factor for _, factor in tile]
    if len(axes) < len(tile) or min(factors) < 1 or max(factors) < 2:
        return None
    return buffer, tile


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
        for buffer in fixed_buffers(stmt, {buffer.data: buffer for buffer in allocated_tiles}):
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


def fixed_buffers(stmt: Stmt, buffers: Mapping[Var, Buffer]) -> set[Buffer]:
    """Return the buffers with an access of other than one element, by their addresses."""
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
    factors = dict(tile)
    counts = [_tiles(extent, factors.get(axis, 1)) for axis, extent in enumerate(buffer.shape)]
    first = counts.pop(tile[0][0])
    return (first, *counts, *map(IntImm, factors.values()))


def _tiles(extent: Expr, factor: int) -> Expr:
    """Return the number of tiles that cover an extent."""
    dtype = dtype_of(extent)
    covered = BinOp("+", extent, IntImm(factor - 1, dtype))
    return simplify(BinOp("//", covered, IntImm(factor, dtype)))


def _indices(indices: tuple[Expr, ...], tile: Tile) -> tuple[Expr, ...]:
    """Return the indices of an element: the first axis outermost, the others in their order."""
    outer = list(indices)
    inner = []
    for axis, factor in tile:
        size = IntImm(factor, dtype_of(indices[axis]))
        outer[axis] = BinOp("//", indices[axis], size)
        inner.append(BinOp("%", indices[axis], size))
    return outer.pop(tile[0][0]), *outer, *inner
