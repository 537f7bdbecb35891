"""The methods of `Schedule` that change blocks; each is documented where it is implemented."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.nodes import AnnotationDict, AnnotationValue, BufferRegion, PrimFunc, Var
from compiler.schedule.annotate import annotate, unannotate
from compiler.schedule.cache_read import cache_read
from compiler.schedule.cache_write import cache_write
from compiler.schedule.compute_at import compute_at
from compiler.schedule.compute_inline import compute_inline
from compiler.schedule.decompose_reduction import decompose_reduction
from compiler.schedule.error import refusal
from compiler.schedule.handle import BlockRV, ExprRV, LoopRV
from compiler.schedule.queries import Queries
from compiler.schedule.reverse_compute_at import reverse_compute_at
from compiler.schedule.reverse_compute_inline import reverse_compute_inline
from compiler.schedule.tree import block_path, realize_at


class BlockMethods(Queries):
    """Primitives on blocks. A block is given by its handle or by its name."""

    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a block under a loop of its consumers; see `compiler.schedule.compute_at`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("compute_at", block)
        var = self._loop_in("compute_at", func, loop)
        func = compute_at(func, name, var, preserve_unit_loops=preserve_unit_loops, index=index)
        self._commit(func)
        self._record("compute_at", _placement(handle, loop, preserve_unit_loops, index))

    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a block under its producers' loop; see `compiler.schedule.reverse_compute_at`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("reverse_compute_at", block)
        var = self._loop_in("reverse_compute_at", func, loop)
        func = reverse_compute_at(
            func, name, var, preserve_unit_loops=preserve_unit_loops, index=index
        )
        self._commit(func)
        self._record("reverse_compute_at", _placement(handle, loop, preserve_unit_loops, index))

    def compute_inline(self, block: BlockRV | str) -> None:
        """Inline a block into its consumers; see `compiler.schedule.compute_inline`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("compute_inline", block)
        self._commit(compute_inline(func, name))
        self._record("compute_inline", {"block": handle})
        self._kill("compute_inline", [handle])

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Inline a block into its producer; see `compiler.schedule.reverse_compute_inline`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("reverse_compute_inline", block)
        self._commit(reverse_compute_inline(func, name))
        self._record("reverse_compute_inline", {"block": handle})
        self._kill("reverse_compute_inline", [handle])

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy what a block reads, and read the copy; see `compiler.schedule.cache_read`.

        Args:
            read_buffer_index: Which of the block's reads, by number or by the buffer's name.
            consumer_blocks: Who shall read the copy; None or none is all that read the buffer.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("cache_read", block)
        found = [self._find("cache_read", consumer) for consumer in consumer_blocks or ()]
        if any(other is not func for _, other, _ in found):
            raise self._fail("cache_read", "the blocks are in different functions")
        index = self._region("cache_read", func, name, read_buffer_index)
        func, copy = cache_read(func, name, index, storage_scope, [n for _, _, n in found])
        self._commit(func)
        new = self._new_block(func, copy)
        arguments: dict[str, object] = {
            "block": handle,
            "read_buffer_index": index,
            "storage_scope": storage_scope,
        }
        if found:
            arguments["consumer_blocks"] = [consumer for consumer, _, _ in found]
        self._record("cache_read", arguments, [new])
        return new

    def cache_write(
        self, block: BlockRV | str, write_buffer_index: int | str, storage_scope: str
    ) -> BlockRV:
        """Write to a new buffer, and copy it; see `compiler.schedule.cache_write`.

        Args:
            write_buffer_index: Which of the block's writes, by number or by the buffer's name.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("cache_write", block)
        index = self._region("cache_write", func, name, write_buffer_index)
        func, copy = cache_write(func, name, index, storage_scope)
        self._commit(func)
        new = self._new_block(func, copy)
        arguments = {
            "block": handle,
            "write_buffer_index": index,
            "storage_scope": storage_scope,
        }
        self._record("cache_write", arguments, [new])
        return new

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Initialise a reduction before a loop; see `compiler.schedule.decompose_reduction`.

        The block's handle stands for the update from now on.

        Returns:
            The block that initialises.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("decompose_reduction", block)
        var = self._loop_in("decompose_reduction", func, loop)
        func, init, update = decompose_reduction(func, name, var)
        self._commit(func)
        self._rename_block(func, name, update)
        new = self._new_block(func, init)
        self._record("decompose_reduction", {"block": handle, "loop": loop}, [new])
        return new

    def annotate(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        ann_key: str,
        ann_val: AnnotationValue | ExprRV | Sequence[str | int | float | bool],
    ) -> None:
        """Note something, for passes, on a block or a loop; see `compiler.schedule.annotate`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, at = self._block_or_loop("annotate", block_or_loop)
        value: AnnotationValue
        if isinstance(ann_val, ExprRV):
            value = self._value("annotate", ann_val)
        elif isinstance(ann_val, str | int | float | AnnotationDict):
            value = ann_val
        else:
            ann_val = value = tuple(ann_val)
        self._commit(annotate(func, at, ann_key, value))
        arguments: dict[str, object] = {
            "block_or_loop": handle,
            "ann_key": ann_key,
            "ann_val": ann_val,
        }
        self._record("annotate", arguments)

    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Remove a note from a block or a loop; see `compiler.schedule.annotate`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, at = self._block_or_loop("unannotate", block_or_loop)
        self._commit(unannotate(func, at, ann_key))
        self._record("unannotate", {"block_or_loop": handle, "ann_key": ann_key})

    def _loop_in(self, primitive: str, func: PrimFunc, loop: LoopRV) -> Var:
        found, var = self._loop(primitive, loop)
        if found is not func:
            raise self._fail(primitive, f"loop {var.name} is in another function than the block")
        return var

    def _block_or_loop(
        self, primitive: str, at: BlockRV | LoopRV | str
    ) -> tuple[BlockRV | LoopRV, PrimFunc, Var | str]:
        if isinstance(at, LoopRV):
            return (at, *self._loop(primitive, at))
        return self._find(primitive, at)

    def _region(self, primitive: str, func: PrimFunc, block: str, index: int | str) -> int:
        """Return the number of one of a block's reads or writes, which may be given by name."""
        if isinstance(index, int):
            return index
        refuse = refusal(primitive, func)
        realize = realize_at(block_path(func, block, refuse))
        regions: tuple[BufferRegion, ...] = realize.block.reads
        if primitive == "cache_write":
            regions = realize.block.writes
        names = [region.buffer.name for region in regions]
        if index not in names:
            what = "write" if primitive == "cache_write" else "read"
            known = ", ".join(names) or "nothing"
            raise refuse(f"block {block} does not {what} {index}, but {known}", realize)
        return names.index(index)


def _placement(
    block: BlockRV, loop: LoopRV, preserve_unit_loops: bool, index: int
) -> dict[str, object]:
    arguments: dict[str, object] = {"block": block, "loop": loop}
    if preserve_unit_loops:
        arguments["preserve_unit_loops"] = True
    if index != -1:
        arguments["index"] = index
    return arguments
