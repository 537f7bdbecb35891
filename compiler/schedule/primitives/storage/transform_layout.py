"""Transform the layout of a buffer: `transform_layout`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, TypeAlias

from compiler.ir.analysis.regions import access_regions
from compiler.ir.arith.iter_map import Extents
from compiler.ir.core.dtypes import DType, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_BUFFER_BYTES, MAX_RANK
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    IntImm,
    Range,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.text.print_expr import show_expr
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.index_map import IndexMap, IndexMapError, show
from compiler.schedule.index.index_map_inverse import inverse_of, is_injective
from compiler.schedule.index.layout_shape import map_extents
from compiler.schedule.index.pad_value import PadValue
from compiler.schedule.primitives.storage.set_scope import allocation_site
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.rewrite.copy_block import is_passed_on
from compiler.schedule.rewrite.layout_padding import Padded, write_padding
from compiler.schedule.rewrite.rewrite_access import AccessRewriter, Indices, Mode
from compiler.schedule.tree.tree import Path, block_path, realize_at, scope_path

BufferMode: TypeAlias = Literal["read", "write"]
"""Whether a buffer is selected among a block's reads or its writes."""


def transform_layout(
    func: PrimFunc,
    block: str,
    mode: BufferMode,
    index: int,
    index_map: IndexMap,
    *,
    pad_value: PadValue | None = None,
    assume_injective_transform: bool = False,
) -> PrimFunc:
    """Change the layout of a buffer that a block accesses, at all of its accesses.

    The layout of a parameter is part of the calling convention: the caller must pass, and
    receives, arrays in the new layout.

    Args:
        mode: Whether the buffer is a read or a write of the block.
        index: The number among the reads or writes of the block.
        index_map: The new indices of the element at given indices.
        pad_value: The value of padding elements. In a buffer that is never written, it is a
            promise of the caller, and otherwise written.
        assume_injective_transform: Leave padding as it is.

    Requires:
        The block has such a read or write, of a parameter or an allocated buffer without views,
        whose storage no opaque call takes. The map is injective, and new indices start at zero.
        There is no padding, or a value for it of the type of the elements, or
        `assume_injective_transform` is given. The new buffer is within the limits of sizes.

    Rewrites:
        B = T.alloc_buffer((n,))                   B = T.alloc_buffer((n // 4, 4))
        for i in range(n):                         for i in range(n):
            B[i] = f(A[i])                   ->        B[i // 4, i % 4] = f(A[i])
        for i in range(n):                         for i in range(n):
            C[i] = g(B[i])                             C[i] = g(B[i // 4, i % 4])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("transform_layout", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    regions = realize.block.reads if mode == "read" else realize.block.writes
    old = region_buffer(regions, index, mode, realize, refuse)
    home = _home(func, path, old, refuse)
    _require_plain(func, old, refuse)
    try:
        layout_map = index_map.with_dtype(_index_dtype(old))
        padded, new = _new_layout(old, layout_map, pad_value, assume_injective_transform)
    except IndexMapError as error:
        raise refuse(str(error), realize, "invalid_argument") from None
    if padded is not None:
        func = write_padding(func, home, padded, refuse)

    def indices(at: Indices, extents: Extents) -> Indices:
        return layout_map.map_indices(at, extents)

    rewriter = AccessRewriter(old, new, indices, lambda _, b, m, __: _region(b, m, new))
    body = rewriter.stmt(func.body, {})
    assert isinstance(body, BlockRealize), "the root stays"
    params = tuple(new if param == old else param for param in func.params)
    return replace(func, params=params, body=body)


def _home(func: PrimFunc, path: Path, buffer: Buffer, refuse: Refuse) -> Path:
    """Return the path to the block that allocates a buffer; for a parameter, to the scope."""
    if buffer in func.params:
        return scope_path(path) if len(path) > 1 else path
    return allocation_site(path, buffer, refuse)


def _require_plain(func: PrimFunc, buffer: Buffer, refuse: Refuse) -> None:
    """Refuse if the layout of a buffer is used or declared elsewhere."""
    if buffer.strides or buffer.elem_offset is not None:
        raise refuse(f"{buffer.name} declares its strides or offset", func, "fixed_buffer")
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, BlockRealize):
            if any(match.source.buffer == buffer for match in stmt.block.match_buffers):
                raise refuse(
                    f"block {stmt.block.name} has a view of {buffer.name}", stmt, "structure"
                )
            if is_passed_on(stmt, buffer):
                reason = f"block {stmt.block.name} passes the storage of {buffer.name} on"
                raise refuse(reason, stmt, "fixed_buffer")


def _new_layout(
    old: Buffer, index_map: IndexMap, pad_value: PadValue | None, may_pad: bool
) -> tuple[Padded | None, Buffer]:
    """Return a buffer in its new layout, and the statement for its padding, if it has some.

    Raises:
        IndexMapError: If the map is not suitable.
    """
    new = replace(old, shape=map_extents(index_map, old.shape))
    _require_size(new)
    if may_pad and pad_value is None:
        if not is_injective(index_map, old.shape):
            raise IndexMapError(f"the map {index_map} may send two elements to one place")
        return None, new
    inverse = inverse_of(index_map, old.shape)
    if not inverse.has_padding:
        return None, new
    if pad_value is None:
        where = show(inverse.index_map.params, inverse.padding)
        shape = ", ".join(show_expr(extent) for extent in new.shape)
        reason = f"the map {index_map} makes {old.name} of shape ({shape}), padded where {where}"
        raise IndexMapError(f"{reason}: a pad_value is needed")
    return Padded(old, new, inverse, pad_value), new


def _require_size(new: Buffer) -> None:
    extents = [extent.value for extent in new.shape if isinstance(extent, IntImm)]
    size = math.prod(extents) * size_bytes(new.dtype)
    if len(new.shape) > MAX_RANK or size > MAX_BUFFER_BYTES:
        raise IndexMapError(f"{new.name} would have {len(new.shape)} dimensions and {size} bytes")


def _index_dtype(buffer: Buffer) -> DType:
    return dtype_of(buffer.shape[0]) if buffer.shape else "int32"


def _region(block: Block, mode: Mode, new: Buffer) -> BufferRegion:
    """Return the region that a block accesses of a buffer in its new layout."""
    reads, writes = access_regions(block.body, block.init)
    touched = next((r for r in (reads if mode == "read" else writes) if r.buffer == new), None)
    full_box = tuple(Range(IntImm(0, dtype_of(size)), size) for size in new.shape)
    return BufferRegion(new, full_box) if touched is None else touched
