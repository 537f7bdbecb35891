"""Buffers and layouts as callers name them, resolved for a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BlockRealize, Buffer, BufferRegion, Var
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.index.index_map import IndexMap, IndexMapError, IndexMapLike, as_index_map
from compiler.schedule.index.pad_value import PadValue, PadValueLike, as_pad_value
from compiler.schedule.primitives.storage.transform_layout import BufferMode
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.tree.tree import block_path, realize_at

BufferIndex: TypeAlias = int | str | Var | Buffer
"""One of a block's reads or writes: by number, by the buffer's name, or the buffer."""

BufferLike: TypeAlias = Sequence[object] | str | Var | Buffer
"""A buffer that a block accesses: `("read", 0)`, `("write", 0)`, its name, or the buffer."""


@dataclass(frozen=True)
class Layout:
    """A map of indices and a value for the padding, with their form in a trace."""

    index_map: IndexMap
    pad_value: PadValue | None
    parameter: str | None  # the name of the buffer, if it is a parameter

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the instruction in a trace."""
        pad_value = None if self.pad_value is None else str(self.pad_value)
        return {"index_map": str(self.index_map), "pad_value": pad_value}


def region_number(
    primitive: str, func: PrimFunc, block: str, buffer_index: BufferIndex, mode: BufferMode
) -> int:
    """Return the position of a buffer in a block's reads or writes.

    Raises:
        ScheduleError: If the block accesses no such buffer, or several.
    """
    if isinstance(buffer_index, int):
        return buffer_index
    refuse = refusal(primitive, func)
    realize = realize_at(block_path(func, block, refuse))
    positions = _matching_regions(_regions(realize, mode), buffer_index)
    if len(positions) != 1:
        buffer_names = ", ".join(r.buffer.name for r in _regions(realize, mode)) or "nothing"
        reason = f"block {block} does not {mode} {_name(buffer_index)}, but {buffer_names}"
        if positions:
            reason = f"block {block} has several {mode}s called {_name(buffer_index)}"
        raise refuse(reason, realize, "invalid_argument")
    return positions[0]


def region_of_buffer(
    primitive: str, func: PrimFunc, block: str, buffer_like: BufferLike
) -> tuple[BufferMode, int]:
    """Return whether a buffer is one of a block's reads or its writes, and its position.

    Raises:
        ScheduleError: If the block accesses no such buffer, or several.
    """
    refuse = refusal(primitive, func)
    realize = realize_at(block_path(func, block, refuse))
    if isinstance(buffer_like, list | tuple):
        match list(buffer_like):
            case ["read", int() as index]:
                return "read", index
            case ["write", int() as index]:
                return "write", index
            case _:
                reason = (
                    f'{buffer_like!r} is not a buffer: expected ("read", 0), a name or a buffer'
                )
                raise refuse(reason, realize, "invalid_argument")
    # For a buffer that is both, the write counts.
    modes: tuple[BufferMode, ...] = ("write", "read")
    for mode in modes:
        if isinstance(buffer_like, str | Var | Buffer):
            positions = _matching_regions(_regions(realize, mode), buffer_like)
            if len(positions) > 1:
                reason = f"block {block} has several {mode}s called {_name(buffer_like)}"
                raise refuse(reason, realize, "invalid_argument")
            if positions:
                return mode, positions[0]
    regions = (*realize.block.reads, *realize.block.writes)
    buffer_names = ", ".join(dict.fromkeys(r.buffer.name for r in regions)) or "nothing"
    raise refuse(
        f"block {block} does not touch {_name(buffer_like)}, but {buffer_names}",
        realize,
        "not_found",
    )


def block_index_map(
    primitive: str, func: PrimFunc, block: str, index_map: IndexMapLike
) -> IndexMap:
    """Return an index map of the iterators of a block.

    Raises:
        ScheduleError: If it is not a map of the same number of iterators.
    """
    refuse = refusal(primitive, func)
    realize = realize_at(block_path(func, block, refuse))
    try:
        iter_vars = realize.block.iter_vars
        dtype = dtype_of(iter_vars[0].var) if iter_vars else "int32"
        return as_index_map(index_map, len(iter_vars), dtype, symbolic_vars(func))
    except IndexMapError as error:
        raise refuse(str(error), realize, "invalid_argument") from None


def buffer_layout(
    primitive: str,
    func: PrimFunc,
    which: tuple[str, BufferMode, int],
    index_map: IndexMapLike,
    pad_value: PadValueLike | None,
) -> Layout:
    """Return a new layout for a buffer that a block accesses.

    Args:
        primitive: The primitive, for errors.
        func: The program.
        which: The block, and the position of the buffer in its reads or writes.
        index_map: The map of the indices.
        pad_value: The value of the padding.

    Raises:
        ScheduleError: If the map or the value does not fit the buffer.
    """
    block, mode, index = which
    refuse = refusal(primitive, func)
    realize = realize_at(block_path(func, block, refuse))
    regions = _regions(realize, mode)
    buffer = region_buffer(regions, index, mode, realize, refuse)
    dtype = dtype_of(buffer.shape[0]) if buffer.shape else "int32"
    parameter = buffer.name if buffer in func.params else None
    try:
        layout_map = as_index_map(index_map, len(buffer.shape), dtype, symbolic_vars(func))
        if pad_value is None:
            return Layout(layout_map, None, parameter)
        rank = len(layout_map.results)
        value = as_pad_value(pad_value, rank, buffer.dtype, dtype)
    except IndexMapError as error:
        raise refuse(str(error), realize, "invalid_argument") from None
    return Layout(layout_map, value, parameter)


def _regions(realize: BlockRealize, mode: str) -> tuple[BufferRegion, ...]:
    return realize.block.reads if mode == "read" else realize.block.writes


def _matching_regions(
    regions: Sequence[BufferRegion], buffer_index: str | Var | Buffer
) -> list[int]:
    def is_meant(buffer: Buffer) -> bool:
        if isinstance(buffer_index, str):
            return buffer.name == buffer_index
        return buffer.data is (buffer_index if isinstance(buffer_index, Var) else buffer_index.data)

    return [number for number, region in enumerate(regions) if is_meant(region.buffer)]


def _name(buffer_index: object) -> str:
    return buffer_index.name if isinstance(buffer_index, Var | Buffer) else str(buffer_index)
