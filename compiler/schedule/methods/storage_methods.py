"""The methods of `Schedule` that change the layout, the alignment and the scope of buffers.

`primitives.storage` documents each.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.schedule.index.index_map import IndexMapLike
from compiler.schedule.index.pad_value import PadValueLike
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.methods.storage_arguments import (
    BufferIndex,
    BufferLike,
    block_index_map,
    buffer_layout,
    region_number,
    region_of_buffer,
)
from compiler.schedule.primitives.storage.set_scope import set_scope
from compiler.schedule.primitives.storage.storage_align import storage_align
from compiler.schedule.primitives.storage.transform_block_layout import transform_block_layout
from compiler.schedule.primitives.storage.transform_layout import transform_layout
from compiler.schedule.trace.handle import BlockRV


class StorageMethods(Queries):
    """Primitives on buffers. A block is given by its handle or by its name."""

    @property
    def layouts(self) -> dict[str, tuple[str, ...]]:
        """Return the parameters of the current function whose layout `transform_layout` changed.

        Each comes with the maps that were applied to it, in order. The caller of the function must
        pass, and receives, arrays in that layout.
        """
        return {name: maps for (of, name), maps in self._layouts.items() if of == self._working}

    def require_own_layouts(self) -> None:
        """Refuse a schedule that changes the layout of the function's arrays.

        Raises:
            ScheduleError: If the layout of a parameter was changed.
        """
        for name, maps in self.layouts.items():
            reason = f"parameter {name} has another layout than the workload's: {', '.join(maps)}"
            raise self._fail("transform_layout", reason)

    @primitive()
    def set_scope(
        self, block: BlockRV | str, buffer_index: BufferIndex, storage_scope: str
    ) -> None:
        """Change the memory scope of a buffer; see `primitives.storage.set_scope`.

        Args:
            buffer_index: The number of the write among those of the block.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, title = self._find("set_scope", block)
        index = region_number("set_scope", func, title, buffer_index, "write")
        self._commit("set_scope", set_scope(func, title, index, storage_scope))
        arguments = {"block": handle, "buffer_index": index, "storage_scope": storage_scope}
        self._record("set_scope", arguments)

    @primitive()
    def storage_align(
        self,
        block: BlockRV | str,
        buffer_index: BufferIndex,
        axis: int,
        factor: int,
        offset: int,
    ) -> None:
        """Request an alignment of a buffer's axis; see `primitives.storage.storage_align`.

        Args:
            buffer_index: The number of the write among those of the block.
            axis: The axis; a negative one counts from the last.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, title = self._find("storage_align", block)
        index = region_number("storage_align", func, title, buffer_index, "write")
        numbers = {"axis": axis, "factor": factor, "offset": offset}
        arguments: Mapping[str, object] = numbers
        for key, number in arguments.items():
            if not isinstance(number, int) or isinstance(number, bool):
                reason = f"{key} is {number!r}: expected an integer"
                raise self._fail("storage_align", reason, func)
        self._commit("storage_align", storage_align(func, title, index, **numbers))
        self._record("storage_align", {"block": handle, "buffer_index": index, **numbers})

    @primitive()
    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: BufferLike,
        index_map: IndexMapLike,
        pad_value: PadValueLike | None = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Change the layout of a buffer; see `primitives.storage.transform_layout`.

        Args:
            buffer: `("read", 0)`, `("write", 0)`, the buffer, or its name.
            index_map: The new indices of the element at given indices.
            pad_value: The value of the padding.
            assume_injective_transform: Leave padding as it is.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        name = "transform_layout"
        handle, func, title = self._find(name, block)
        mode, index = region_of_buffer(name, func, title, buffer)
        layout = buffer_layout(name, func, (title, mode, index), index_map, pad_value)
        func = transform_layout(
            func,
            title,
            mode,
            index,
            layout.index_map,
            pad_value=layout.pad_value,
            assume_injective_transform=assume_injective_transform,
        )
        self._commit(name, func)
        if layout.parameter is not None:
            key = (func.name, layout.parameter)
            self._layouts[key] = (*self._layouts.get(key, ()), str(layout.index_map))
        arguments = {
            "block": handle,
            "buffer": (mode, index),
            **layout.arguments(),
            "assume_injective_transform": assume_injective_transform,
        }
        self._record(name, arguments)

    @primitive()
    def transform_block_layout(self, block: BlockRV | str, index_map: IndexMapLike) -> None:
        """Run a block over other iterators; see `primitives.storage.transform_block_layout`.

        Args:
            index_map: The new iterators in terms of the old ones.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, title = self._find("transform_block_layout", block)
        block_map = block_index_map("transform_block_layout", func, title, index_map)
        self._commit("transform_block_layout", transform_block_layout(func, title, block_map))
        self._record("transform_block_layout", {"block": handle, "index_map": str(block_map)})
