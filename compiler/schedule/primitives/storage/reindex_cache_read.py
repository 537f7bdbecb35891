"""Cache a buffer that a block reads, at chosen indices: `reindex_cache_read`."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.index.index_map import IndexMapLike
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.primitives.storage.reindex import require_in_bounds
from compiler.schedule.rewrite.cache import (
    insert_copy,
    only_writer,
    place_before,
    region_buffer,
    require_copy_holds,
    require_memory_scope,
    require_no_pointer,
    require_steady_indices,
)
from compiler.schedule.rewrite.reindex_cache import copy_name, reindexed, use_copy


def reindex_cache_read(
    func: PrimFunc, block: str, read_index: int, memory_scope: str, index_map: IndexMapLike
) -> tuple[PrimFunc, str]:
    """Copy the elements that a block reads to chosen indices, and read the copy instead.

    The copy runs over those of the block's loops that determine the elements.

    Args:
        read_index: The number of the read among those of the block.
        memory_scope: The memory of the copy: "global", "shared", "local", ...
        index_map: The indices in the copy, in terms of the block's iterators.

    Requires:
        The block has such a read, of one element in a run; `memory_scope` is valid. The block does
        not write the buffer, contains no other blocks, and runs for all values that its loops give
        the iterators that determine the element; these address only elements of the buffer. At most
        one block of the scope writes the buffer, and comes before. No block writes what the indices
        load after the position of the copy. The map takes as many indices as
        the block has iterators, uses the same ones as the index in the buffer, and is injective. No
        loop around the copy is vectorized. No opaque call takes the storage of the buffer
            undeclared.

    Rewrites:
        for i, j in T.grid(n, m):            for i, j in T.grid(n, m):
            B[i, j] = f(A[i, j])     ->          A_shared[j, i] = A[i, j]
                                             for i, j in T.grid(n, m):
                                                 B[i, j] = f(A_shared[j, i])

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reindex_cache_read", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.reads, read_index, "read", site.realize, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    require_no_pointer(scope, buffer)
    if site.writes(buffer):
        raise refuse(
            f"block {block} writes {buffer.name}, which it reads", site.realize, "dependence"
        )
    reindexing = reindexed(scope, site, buffer, memory_scope, index_map)
    require_in_bounds(site, buffer, reindexing.far.indices, refuse)
    writer = only_writer(scope, buffer)
    location = place_before(scope, writer, [site])
    if writer is not None:
        require_copy_holds(scope, buffer, writer, [site], location)
    require_steady_indices(scope, reindexing.far.indices, location, [site])
    name = copy_name(func, buffer, memory_scope)
    func = insert_copy(
        scope, location, reindexing.nest(name, location, is_read=True), reindexing.near.buffer
    )
    return use_copy(func, reindexing), name
