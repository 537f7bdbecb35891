"""Cache a buffer that a block updates in place: `cache_inplace`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    TRUE,
    BlockRealize,
    Buffer,
    For,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.placed_block import PlacedBlock, conditions
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.rewrite.cache import (
    CONCURRENT,
    CopyLocation,
    box_of_reads,
    box_of_writes,
    cache_of,
    child_position,
    insert_copy,
    is_all_written,
    region_buffer,
    require_memory_scope,
    require_no_pointer,
)
from compiler.schedule.rewrite.copy_block import copy_nest, parts_of, redirect
from compiler.schedule.rewrite.placement import require_no_vector_around
from compiler.schedule.tree.tree import fresh_block_name


def cache_inplace(
    func: PrimFunc, block: str, read_index: int, memory_scope: str
) -> tuple[PrimFunc, str, str]:
    """Copy a buffer for a block that updates it in place, and write the copy back afterwards.

    Both copies are directly around the block, in its innermost loop.

    Args:
        read_index: The number of the read among those of the block.
        memory_scope: The memory of the copy: "global", "shared", "local", ...

    Requires:
        The block has such a read, and writes the same buffer; `memory_scope` is valid. In each run
        it writes all of a box, or it writes a box that it also reads. Only the former is accepted
        if the block may not run, or if loops around it are concurrent. None of its loops is
        vectorized, and no reduction over it runs on threads. No opaque call takes the storage of
        the buffer undeclared.

    Rewrites:
        for i in range(n):           for i in range(n):
            A[i] = f(A[i])     ->        A_local[i] = A[i]
                                         A_local[i] = f(A_local[i])
                                         A[i] = A_local[i]

    Returns:
        The program, and the names of the blocks that read and write back.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("cache_inplace", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.reads, read_index, "read", site.realize, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    require_no_pointer(scope, buffer)
    if not site.reads(buffer) or not site.writes(buffer):
        reason = f"block {block} does not both read and write {buffer.name}"
        raise refuse(reason, site.realize, "invalid_argument")
    require_no_vector_around((*scope.path, *site.path), refuse)
    _require_no_shared_sum(site, buffer, refuse)
    location = _around(site)
    standing: set[Var] = set(site.extents)
    fetched, put = box_of_reads(site, buffer, standing), box_of_writes(site, buffer, standing)
    always = site.realize.predicate == TRUE and not conditions(site)
    is_exact = always and is_all_written(site, buffer, put, standing)
    if not is_exact and (fetched != put or location.concurrent_loop() is not None):
        reason = f"block {block} is not proved to write all of a box of {buffer.name} in each run"
        raise refuse(reason, site.realize, "not_proved")

    cache = cache_of(func, buffer, memory_scope)
    base = f"{buffer.name}_{memory_scope}"
    first = fresh_block_name(func, base)
    nest = copy_nest(first, buffer, cache, parts_of(buffer, fetched), site.extents)
    func = insert_copy(scope, location, nest, cache)
    func = redirect(func, [block], buffer, cache)
    scope, site = scope_of_block(func, block, refuse)
    second = fresh_block_name(func, base)
    nest = copy_nest(second, cache, buffer, parts_of(buffer, put), site.extents)
    put_location = _around(site)
    func = insert_copy(
        scope, CopyLocation(put_location.path, put_location.position + 1), nest, None
    )
    return func, first, second


def _require_no_shared_sum(site: PlacedBlock, buffer: Buffer, refuse: Refuse) -> None:
    """Refuse threads that add to the same elements: a copy of one lacks what others add."""
    pairs = zip(site.block.iter_vars, site.realize.iter_values, strict=True)
    steps = {node for i, value in pairs if i.kind == "reduce" for node in walk(value)}
    for loop in site.loops:
        if loop.kind in CONCURRENT and loop.var in steps:
            reason = f"iterations of loop {loop.var.name} add to the same elements of {buffer.name}"
            raise refuse(f"{reason} side by side", loop, "not_proved")


def _around(site: PlacedBlock) -> CopyLocation:
    """Return the position directly before a block, or before the statement around it."""
    path = site.path[:-1]
    while not isinstance(path[-1], For | BlockRealize):
        path = path[:-1]
    return CopyLocation(path, child_position(path[-1], site))
