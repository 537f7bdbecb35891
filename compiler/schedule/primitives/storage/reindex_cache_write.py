"""Cache a buffer that a block writes, at chosen indices: `reindex_cache_write`."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.index.index_map import IndexMapLike
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.primitives.storage.cache_write import place_after, require_written_anew
from compiler.schedule.rewrite.cache import (
    insert_copy,
    region_buffer,
    require_certain_write,
    require_memory_scope,
    require_no_pointer,
    require_steady_indices,
)
from compiler.schedule.rewrite.reindex_cache import copy_name, reindexed, use_copy


def reindex_cache_write(
    func: PrimFunc, block: str, write_index: int, memory_scope: str, index_map: IndexMapLike
) -> tuple[PrimFunc, str]:
    """Let a block write to chosen indices of a new buffer, and copy the elements from there.

    The copy runs over those of the block's loops that determine the elements.

    Args:
        write_index: The number of the write among those of the block.
        memory_scope: The memory of the new buffer: "global", "shared", "local", ...
        index_map: The indices in the new buffer, in terms of the block's iterators.

    Requires:
        The block has such a write, of one element in every run; `memory_scope` is valid. The block
        is the only one of the scope that writes the buffer, does not read its previous contents,
        contains no other blocks, and runs for all values that its loops give the iterators that
        determine the element. No block in the same loops reads the buffer before it, and none from
        this block on writes what the indices load. The map takes as many indices as the block has
        iterators, uses the same ones as the index in the buffer, and is injective. No loop around
        the copy is vectorized. No opaque call takes the storage of the buffer undeclared.

    Rewrites:
        for i, j in T.grid(n, m):            for i, j in T.grid(n, m):
            B[i, j] = f(A[i, j])     ->          B_shared[j, i] = f(A[i, j])
                                             for i, j in T.grid(n, m):
                                                 B[i, j] = B_shared[j, i]

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reindex_cache_write", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.writes, write_index, "write", site.realize, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    require_no_pointer(scope, buffer)
    require_written_anew(scope, site, buffer)
    require_certain_write(site, buffer, refuse)
    reindexing = reindexed(scope, site, buffer, memory_scope, index_map)
    location = place_after(scope, site, buffer, [])
    require_steady_indices(scope, reindexing.far.indices, location, [site])
    name = copy_name(func, buffer, memory_scope)
    func = insert_copy(
        scope, location, reindexing.nest(name, location, is_read=False), reindexing.near.buffer
    )
    return use_copy(func, reindexing), name
