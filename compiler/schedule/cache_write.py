"""The `cache_write` primitive."""

from __future__ import annotations

from compiler.ir.nodes import PrimFunc
from compiler.schedule.cache import (
    cache_of,
    child_position,
    common_path,
    copy_nest,
    insert_copy,
    redirect,
    region_buffer,
)
from compiler.schedule.coverage import finished_box
from compiler.schedule.error import refusal
from compiler.schedule.kind import Unknown
from compiler.schedule.placement import require_no_vector_around
from compiler.schedule.scope import scope_of_block
from compiler.schedule.tree import extents_of, fresh_block_name, loops_on


def cache_write(
    func: PrimFunc, block: str, write_index: int, memory_scope: str
) -> tuple[PrimFunc, str]:
    """Let a block write to a new buffer, and copy that to the old one.

    The copy stands right after the block's loops; where blocks in the same loops read the buffer,
    inside those loops, just after the block.

    Args:
        write_index: Which of the block's writes.
        memory_scope: Where the new buffer lives: "global", "shared", "local", ...

    Requires:
        The block has such a write; it is complete or a reduction, and the only writer of the
        buffer. No block reads the buffer before it. While the loops around the place of the copy
        stand, the block finishes a box of the buffer. None of those loops is vectorized.

    Rewrites:
        for i in range(n):           for i in range(n):
            C[i] = f(A[i])     ->        C_local[i] = f(A[i])
                                     for ax0 in range(n):
                                         C[ax0] = C_local[ax0]

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("cache_write", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.writes, write_index, "write", site, refuse)
    kind = site.kind
    if isinstance(kind, Unknown):
        raise refuse(kind.reason, site.realize)
    if kind not in ("complete", "reduction"):
        reason = f"block {site.name} adds to what {buffer.name} held before"
        raise refuse(reason, site.realize)
    if not site.writes(buffer):
        raise refuse(f"block {site.name} does not write {buffer.name}", site.realize)
    scope.require_only_writer(site)
    cache = cache_of(func, buffer, memory_scope, site, refuse)

    readers = [reader for reader in scope.readers(buffer) if reader is not site]
    for reader in readers:
        if scope.position(reader) < scope.position(site):
            raise refuse(
                f"block {reader.name} reads {buffer.name} before it is written", reader.realize
            )
    # Whoever reads it in other loops comes after those that share loops with the block.
    paths = [common_path([site, reader]) for reader in readers]
    path = max(paths, key=len, default=(scope.realize,))
    require_no_vector_around((*scope.path, *path), refuse)
    fixed = {loop.var for loop in loops_on(path)} | (
        set(site.extents) - {loop.var for loop in site.loops}
    )
    box = finished_box(site, buffer, fixed)
    if box is None:
        reason = f"block {site.name} is not proved to finish a box of {buffer.name}"
        raise refuse(f"{reason} before the place of the copy", site.realize)

    around = {**site.extents, **extents_of(loops_on(path))}
    name = fresh_block_name(func, cache.name)
    nest = copy_nest(name, cache, buffer, box, around)
    position = child_position(path[-1], site) + 1
    func = insert_copy(scope, path, position, nest, cache)
    return redirect(func, [site.name], buffer, cache), name
