"""The methods of `Schedule` that copy buffers.

`primitives.storage` documents each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.ir.core.program import PrimFunc
from compiler.schedule.index.index_map import IndexMapLike
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.methods.storage_arguments import (
    BufferIndex,
    BufferLike,
    block_index_map,
    region_number,
    region_of_buffer,
)
from compiler.schedule.primitives.storage.cache_index import cache_index
from compiler.schedule.primitives.storage.cache_inplace import cache_inplace
from compiler.schedule.primitives.storage.cache_read import cache_read
from compiler.schedule.primitives.storage.cache_write import cache_write
from compiler.schedule.primitives.storage.read_at import read_at
from compiler.schedule.primitives.storage.reindex import reindex
from compiler.schedule.primitives.storage.reindex_cache_read import reindex_cache_read
from compiler.schedule.primitives.storage.reindex_cache_write import reindex_cache_write
from compiler.schedule.primitives.storage.transform_layout import BufferMode
from compiler.schedule.primitives.storage.write_at import write_at
from compiler.schedule.trace.handle import BlockRV, LoopRV


class CacheMethods(Queries):
    """Primitives that make blocks read or write copies of buffers."""

    @primitive()
    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: BufferIndex,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy a block's input, and read the copy; see `primitives.storage.cache_read`.

        Args:
            read_buffer_index: The number of the read among those of the block.
            consumer_blocks: The blocks that read the copy; None or empty for all that read the
                buffer.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._cached("read", block, read_buffer_index, storage_scope, consumer_blocks)

    @primitive()
    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: BufferIndex,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Write to a new buffer, and copy it; see `primitives.storage.cache_write`.

        Args:
            write_buffer_index: The number of the write among those of the block.
            consumer_blocks: The blocks that read the new buffer; None or empty for no block.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._cached("write", block, write_buffer_index, storage_scope, consumer_blocks)

    @primitive(num_outputs=2)
    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: BufferIndex, storage_scope: str
    ) -> list[BlockRV]:
        """Update a copy instead of a buffer; see `primitives.storage.cache_inplace`.

        Args:
            read_buffer_index: The number of the read among those of the block.

        Returns:
            The blocks that read and write back.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        name = "cache_inplace"
        handle, func, title = self._find(name, block)
        index = region_number(name, func, title, read_buffer_index, "read")
        func, *copies = cache_inplace(func, title, index, storage_scope)
        self._commit(name, func)
        new = [self._new_block(func, copy) for copy in copies]
        arguments = {"block": handle, "read_buffer_index": index, "storage_scope": storage_scope}
        self._record(name, arguments, new)
        return new

    @primitive()
    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute indices before a block; see `primitives.storage.cache_index`.

        Args:
            cse_thresh: How often the block computes an index at least.

        Returns:
            The blocks that compute indices.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, title = self._find("cache_index", block)
        func, names = cache_index(func, title, storage_scope, cse_thresh)
        self._commit("cache_index", func)
        new = [self._new_block(func, name) for name in names]
        arguments = {"block": handle, "storage_scope": storage_scope, "cse_thresh": cse_thresh}
        self._record("cache_index", arguments, new)
        return new

    @primitive("ReIndex")
    def reindex(self, block: BlockRV | str, buffer: BufferLike) -> BlockRV:
        """Access a copy of a buffer by the block's iterators; see `primitives.storage.reindex`.

        Args:
            buffer: `("read", 0)`, `("write", 0)`, the buffer, or its name.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, title = self._find("reindex", block)
        mode, index = region_of_buffer("reindex", func, title, buffer)
        func, copy = reindex(func, title, mode, index)
        return self._copied("reindex", func, copy, {"block": handle, "buffer": (mode, index)})

    @primitive()
    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: BufferIndex,
        storage_scope: str,
        index_map: IndexMapLike,
    ) -> BlockRV:
        """Copy a block's input to a layout; see `primitives.storage.reindex_cache_read`.

        Args:
            read_buffer_index: The number of the read among those of the block.
            index_map: The indices in the copy, in terms of the block's iterators.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._reindexed("read", block, read_buffer_index, storage_scope, index_map)

    @primitive()
    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: BufferIndex,
        storage_scope: str,
        index_map: IndexMapLike,
    ) -> BlockRV:
        """Write in a layout, and copy it; see `primitives.storage.reindex_cache_write`.

        Args:
            write_buffer_index: The number of the write among those of the block.
            index_map: The indices in the new buffer, in terms of the block's iterators.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._reindexed("write", block, write_buffer_index, storage_scope, index_map)

    @primitive()
    def read_at(
        self, loop: LoopRV, block: BlockRV | str, read_buffer_index: BufferIndex, storage_scope: str
    ) -> BlockRV:
        """Copy the elements that a loop's iteration reads; see `primitives.storage.read_at`.

        Args:
            read_buffer_index: The number of the read among those of the block.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._copied_at("read", loop, block, read_buffer_index, storage_scope)

    @primitive()
    def write_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        write_buffer_index: BufferIndex,
        storage_scope: str,
    ) -> BlockRV:
        """Copy the elements that a loop's iteration writes; see `primitives.storage.write_at`.

        Args:
            write_buffer_index: The number of the write among those of the block.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        return self._copied_at("write", loop, block, write_buffer_index, storage_scope)

    def _cached(
        self,
        mode: BufferMode,
        block: BlockRV | str,
        buffer_index: BufferIndex,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None,
    ) -> BlockRV:
        name, act = f"cache_{mode}", cache_read if mode == "read" else cache_write
        handles, func, titles = self._with_consumers(name, block, consumer_blocks)
        index = region_number(name, func, titles[0], buffer_index, mode)
        func, copy = act(func, titles[0], index, storage_scope, titles[1:])
        arguments: dict[str, object] = {
            "block": handles[0],
            f"{mode}_buffer_index": index,
            "storage_scope": storage_scope,
        }
        if consumer_blocks:
            arguments["consumer_blocks"] = handles[1:]
        return self._copied(name, func, copy, arguments)

    def _reindexed(
        self,
        mode: BufferMode,
        block: BlockRV | str,
        buffer_index: BufferIndex,
        storage_scope: str,
        index_map: IndexMapLike,
    ) -> BlockRV:
        name = f"reindex_cache_{mode}"
        act = reindex_cache_read if mode == "read" else reindex_cache_write
        handle, func, title = self._find(name, block)
        index = region_number(name, func, title, buffer_index, mode)
        block_map = block_index_map(name, func, title, index_map)
        func, copy = act(func, title, index, storage_scope, block_map)
        arguments = {
            "block": handle,
            f"{mode}_buffer_index": index,
            "storage_scope": storage_scope,
            "index_map": str(block_map),
        }
        return self._copied(name, func, copy, arguments)

    def _copied_at(
        self,
        mode: BufferMode,
        loop: LoopRV,
        block: BlockRV | str,
        buffer_index: BufferIndex,
        storage_scope: str,
    ) -> BlockRV:
        name, act = f"{mode}_at", read_at if mode == "read" else write_at
        handle, func, title = self._find(name, block)
        var = self._loop_in(name, func, loop)
        index = region_number(name, func, title, buffer_index, mode)
        func, copy = act(func, var, title, index, storage_scope)
        arguments = {
            "loop": loop,
            "block": handle,
            f"{mode}_buffer_index": index,
            "storage_scope": storage_scope,
        }
        return self._copied(name, func, copy, arguments)

    def _copied(
        self, primitive: str, func: PrimFunc, copy: str, arguments: Mapping[str, object]
    ) -> BlockRV:
        """Set the program with a new copy, and record how it was made."""
        self._commit(primitive, func)
        new = self._new_block(func, copy)
        self._record(primitive, arguments, [new])
        return new

    def _with_consumers(
        self, primitive: str, block: BlockRV | str, named_consumers: Sequence[BlockRV | str] | None
    ) -> tuple[list[BlockRV], PrimFunc, list[str]]:
        """Return the handles, the function and the names of a block and of some consumers."""
        consumers = [self._find(primitive, consumer) for consumer in named_consumers or ()]
        handle, func, name = self._find(primitive, block)
        if any(other is not func for _, other, _ in consumers):
            raise self._fail(primitive, "the blocks are in different functions", func)
        handles = [handle, *(consumer for consumer, _, _ in consumers)]
        return handles, func, [name, *(title for _, _, title in consumers)]
