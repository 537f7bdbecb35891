"""The `cache_read` primitive."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.nodes import Buffer, PrimFunc, Var
from compiler.schedule.cache import (
    cache_of,
    child_position,
    common_path,
    copy_nest,
    insert_copy,
    redirect,
    region_buffer,
)
from compiler.schedule.coverage import read_box
from compiler.schedule.error import refusal
from compiler.schedule.placement import require_no_vector_around
from compiler.schedule.region import Box, hull
from compiler.schedule.scope import Scope, scope_of_block
from compiler.schedule.site import Site
from compiler.schedule.tree import Path, extents_of, fresh_block_name, loops_on


def cache_read(
    func: PrimFunc, block: str, read_index: int, memory_scope: str, consumers: Sequence[str] = ()
) -> tuple[PrimFunc, str]:
    """Copy a buffer that a block reads, and read the copy instead.

    The copy stands where the buffer is complete: before everything else in the scope, or right
    after the last block that writes it. It holds what the consumers read.

    Args:
        read_index: Which of the block's reads.
        memory_scope: Where the copy lives: "global", "shared", "local", ...
        consumers: The blocks that shall read the copy; none stands for all that read the buffer
            and do not write it.

    Requires:
        The block has such a read, and neither it nor a consumer writes the same buffer. Each
        consumer is in the block's scope, reads the buffer, and stands after all that write it. No
        loop around the place of the copy is vectorized.

    Rewrites:
        for i in range(n):           for ax0 in range(n):
            B[i] = f(A[i])     ->        A_shared[ax0] = A[ax0]
                                     for i in range(n):
                                         B[i] = f(A_shared[i])

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("cache_read", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.reads, read_index, "read", site, refuse)
    readers = _consumers(scope, site, buffer, consumers)
    cache = cache_of(func, buffer, memory_scope, site, refuse)

    path, position = _place(scope, buffer, readers)
    require_no_vector_around((*scope.path, *path), refuse)
    box = _read_by(readers, buffer, path)
    around = {**readers[0].extents, **extents_of(loops_on(path))}
    name = fresh_block_name(func, cache.name)
    func = insert_copy(scope, path, position, copy_nest(name, buffer, cache, box, around), cache)
    return redirect(func, [reader.name for reader in readers], buffer, cache), name


def _consumers(scope: Scope, site: Site, buffer: Buffer, names: Sequence[str]) -> list[Site]:
    readers = [reader for reader in scope.readers(buffer) if not reader.writes(buffer)]
    if names:
        by_name = {reader.name: reader for reader in scope.readers(buffer)}
        for name in names:
            if name not in by_name:
                reason = f"block {name} does not read {buffer.name} in the scope of block"
                raise scope.refuse(f"{reason} {site.name}", site.realize)
        readers = [by_name[name] for name in names]
    if not site.reads(buffer):
        raise scope.refuse(f"block {site.name} does not read {buffer.name}", site.realize)
    for reader in readers if site in readers else [site, *readers]:
        if reader.writes(buffer):
            reason = f"block {reader.name} writes {buffer.name}, which it reads"
            raise scope.refuse(reason, reader.realize)
    return readers


def _place(scope: Scope, buffer: Buffer, readers: list[Site]) -> tuple[Path, int]:
    """Return the loop, or scope, that holds the copy, and the position among its statements."""
    writers = scope.writers(buffer)
    if not writers:
        return (scope.realize,), 0
    path = common_path([*writers, *readers])
    last = max(child_position(path[-1], writer) for writer in writers)
    for reader in readers:
        if child_position(path[-1], reader) <= last:
            reason = f"block {reader.name} reads {buffer.name} before it is written for the last"
            raise scope.refuse(f"{reason} time", reader.realize)
    return path, last + 1


def _read_by(readers: list[Site], buffer: Buffer, path: Path) -> Box:
    """Return the box that the readers touch while the loops of `path` stand."""
    standing: set[Var] = {loop.var for loop in loops_on(path)}
    boxes: list[Box] = []
    for reader in readers:
        fixed = standing | (set(reader.extents) - {loop.var for loop in reader.loops})
        boxes.extend(
            read_box(reader, access, fixed)
            for access in reader.facts.reads
            if access.buffer == buffer
        )
    box = boxes[0]
    for other in boxes[1:]:
        box = tuple(hull(a, b) for a, b in zip(box, other, strict=True))
    return box
