"""The methods of `Schedule` for what blocks declare of their accesses, and types of buffers.

`primitives` documents each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.dtypes import DTYPES, DType
from compiler.ir.core.expr_types import dtype_of
from compiler.schedule.error import refusal
from compiler.schedule.index.index_map import IndexMapError
from compiler.schedule.index.range_map import RangesLike, as_range_map
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.methods.storage_arguments import BufferIndex, region_number
from compiler.schedule.primitives.blocks.annotate_buffer_access import annotate_buffer_access
from compiler.schedule.primitives.blocks.unsafe_hide_buffer_access import (
    unsafe_hide_buffer_access,
)
from compiler.schedule.primitives.storage.transform_layout import BufferMode
from compiler.schedule.primitives.storage.unsafe_set_dtype import unsafe_set_dtype
from compiler.schedule.trace.handle import BlockRV
from compiler.schedule.tree.tree import block_path, realize_at


class AccessMethods(Queries):
    """Primitives that declare accesses of blocks, or change the types of buffers."""

    @primitive()
    def annotate_buffer_access(
        self,
        block: BlockRV | str,
        buffer_index: BufferIndex,
        buf_type: str,
        gen_new_ranges: RangesLike,
    ) -> None:
        """Declare the box that a block accesses; see `primitives.blocks.annotate_buffer_access`.

        Args:
            buffer_index: The number of the region among the reads or writes of the block.
            buf_type: "read" or "write".
            gen_new_ranges: Given the iterators, returns for each dimension an index, or a pair of
                the first index and the end.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        name = "annotate_buffer_access"
        handle, func, title = self._find(name, block)
        mode = self._mode(name, buf_type)
        number = region_number(name, func, title, buffer_index, mode)
        realize = realize_at(block_path(func, title, refusal(name, func)))
        iter_vars = realize.block.iter_vars
        try:
            dtypes = [dtype_of(iter_var.var) for iter_var in iter_vars]
            ranges = as_range_map(gen_new_ranges, dtypes, symbolic_vars(func))
        except IndexMapError as error:
            raise self._fail(name, str(error), func) from None
        self._commit(name, annotate_buffer_access(func, title, number, mode, ranges))
        arguments = {
            "block": handle,
            "buffer_index": number,
            "buf_type": mode,
            "gen_new_ranges": str(ranges),
        }
        self._record(name, arguments)

    @primitive()
    def unsafe_hide_buffer_access(
        self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]
    ) -> None:
        """Remove regions that a block declares; see `primitives.blocks.unsafe_hide_buffer_access`.

        Args:
            buf_type: "read" or "write".
            buf_index_array: The numbers of the regions.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        name = "unsafe_hide_buffer_access"
        handle, func, title = self._find(name, block)
        mode = self._mode(name, buf_type)
        numbers = tuple(self._value(name, number) for number in buf_index_array)
        self._commit(name, unsafe_hide_buffer_access(func, title, mode, numbers))
        arguments = {"block": handle, "buf_type": mode, "buf_index_array": numbers}
        self._record(name, arguments)

    @primitive()
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: BufferIndex, dtype: str) -> None:
        """Store a buffer in another type; see `primitives.storage.unsafe_set_dtype`.

        Args:
            buffer_index: The number of the write among those of the block.
            dtype: The new type. A narrower one changes what the program computes.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        name = "unsafe_set_dtype"
        handle, func, title = self._find(name, block)
        number = region_number(name, func, title, buffer_index, "write")
        if dtype not in DTYPES:
            raise self._fail(name, f"unknown type {dtype!r}", func)
        self._commit(name, unsafe_set_dtype(func, title, number, cast("DType", dtype)))
        self._record(name, {"block": handle, "buffer_index": number, "dtype": dtype})

    def _mode(self, primitive: str, buf_type: str) -> BufferMode:
        match buf_type:
            case "read" | "write":
                return buf_type
            case _:
                raise self._fail(primitive, f'buf_type is {buf_type!r}: expected "read" or "write"')
