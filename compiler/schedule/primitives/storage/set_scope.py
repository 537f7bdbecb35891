"""Change the memory scope of a buffer: `set_scope`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    For,
    Stmt,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.scopes import is_private_scope
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.fragment_elements import require_held_together
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import starts_anew
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.cache import region_buffer, require_memory_scope
from compiler.schedule.rewrite.rewrite_access import with_views
from compiler.schedule.tree.tree import Path, block_path, fresh_buffer_name, realize_at, replace_at


def set_scope(func: PrimFunc, block: str, write_index: int, memory_scope: str) -> PrimFunc:
    """Change the memory scope of a buffer that a block writes, and of its views.

    Args:
        write_index: The number of the write among those of the block.
        memory_scope: The new scope: "global", "shared", "local", "wmma.accumulator", ...

    Requires:
        The block has such a write, to a buffer that a block around it allocates. `memory_scope`
        is valid. If each thread gets its own copy of the buffer, each reads only what it wrote. If
        it is a fragment ("wmma.*"), each block uses its elements with those of other fragments at
        the same row and column, and numbers of rows ("wmma.accumulator_rows") at the same row, or
        reduces a row to its number by a sum, a minimum or a maximum.

    Rewrites:
        B = T.alloc_buffer((n,))   ->   B = T.alloc_buffer((n,), scope=...)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("set_scope", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    buffer = region_buffer(realize.block.writes, write_index, "write", realize, refuse)
    if buffer.scope == memory_scope:
        return func
    require_memory_scope(memory_scope, realize, refuse)
    home = allocation_site(path, buffer, refuse)
    if is_private_scope(memory_scope) and not is_private_scope(buffer.scope):
        _require_own_values(BlockScope(func, home, refuse), buffer)
    require_held_together(BlockScope(func, home, refuse), buffer, memory_scope)
    name = fresh_buffer_name(func, f"{buffer.name}_{memory_scope}")
    new = replace(buffer, data=Var(name, "handle"), scope=memory_scope or "global")
    stmt = with_views(replace_buffers(home[-1], {buffer: new}), buffer, new)
    return replace_at(func, home, stmt)


def _require_own_values(scope: BlockScope, buffer: Buffer) -> None:
    """Refuse if a thread may read what another one wrote."""
    for reader in scope.readers(buffer):
        threads = {loop for loop in reader.loops if loop.kind == "thread_binding"}
        if any(isinstance(s, For) and s.kind == "thread_binding" for s in _inside(reader)):
            raise scope.refuse(
                f"block {reader.name} contains loops over threads", reader.realize, "threads"
            )
        writes_before_reading = reader.writes(buffer) and (
            reader.kind == "complete" or starts_anew(reader)
        )
        if (
            threads
            and not writes_before_reading
            and not any(
                threads <= set(writer.loops) and covers_reads(writer, reader, buffer)
                for writer in scope.writers(buffer)
                if writer is not reader
            )
        ):
            reason = f"a thread of block {reader.name} may read what another wrote to {buffer.name}"
            raise scope.refuse(f"{reason}: it can't be local", reader.realize, "threads")


def _inside(site: PlacedBlock) -> Iterator[Stmt]:
    return walk_stmts(site.block.body)


def allocation_site(path: Path, buffer: Buffer, refuse: Refuse) -> Path:
    """Return the path to the block that allocates a buffer, around the end of a path, or refuse."""
    for depth in range(len(path), 0, -1):
        stmt = path[depth - 1]
        if isinstance(stmt, BlockRealize) and buffer in stmt.block.alloc_buffers:
            return path[:depth]
    reason = f"{buffer.name} is not allocated by a block: it is a parameter, or a view"
    raise refuse(reason, path[-1], "fixed_buffer")
