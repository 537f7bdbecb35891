"""Cache a buffer that a block reads: `cache_read`."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import (
    Buffer,
    BufferRegion,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.index.region import Box, Span, contains
from compiler.schedule.legality.placed_block import PlacedBlock, scope_extents
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import (
    CopyLocation,
    box_of_reads,
    box_of_writes,
    cache_of,
    hull_of,
    insert_copy,
    is_all_written,
    named_readers,
    only_writer,
    place_before,
    place_between,
    region_buffer,
    require_copy_holds,
    require_memory_scope,
    require_no_pointer,
)
from compiler.schedule.rewrite.copy_block import (
    CopiedPart,
    copy_nest,
    full_parts,
    is_passed_on,
    is_whole,
    parts_of,
    redirect,
    stay_in_parts,
)
from compiler.schedule.tree.tree import extents_of, fresh_block_name, loops_on


def cache_read(
    func: PrimFunc, block: str, read_index: int, memory_scope: str, consumers: Sequence[str] = ()
) -> tuple[PrimFunc, str]:
    """Copy a buffer that a block reads, and read the copy instead.

    The copy comes first in the scope if no block of the scope writes the buffer, else before the
    first consumer, in the loops around both it and the writer. Outside of any loop it has the shape
    of its contents, else that of the buffer.

    Args:
        read_index: The number of the read among those of the block.
        memory_scope: The memory of the copy: "global", "shared", "local", ...
        consumers: The blocks that read the copy; empty for all that read the buffer and do not
            write it.

    Requires:
        The block has such a read, `memory_scope` is valid. At most one block of the scope writes
        the buffer. Each consumer is in the scope, reads the buffer, does not write it. Either all
        come before the writer, or each comes after it, and reads only elements that the writer
        wrote. If concurrent iterations
        enclose the copy, the box of each is exactly what is written in it. No loop around the copy
        is vectorized. No opaque call takes the storage of the buffer undeclared.

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
    buffer = region_buffer(site.block.reads, read_index, "read", site.realize, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    require_no_pointer(scope, buffer)
    writer = only_writer(scope, buffer)
    readers = _consumers(scope, site, buffer, consumers)
    if writer is not None and _come_first(scope, readers, writer):
        location, writer = place_between(scope, readers, writer), None
    else:
        location = place_before(scope, writer, readers)
    if writer is None:
        parts = parts_of(buffer, _read(scope, buffer, readers, location))
        is_exact = location.is_scope
    else:
        require_copy_holds(scope, buffer, writer, readers, location)
        parts, is_exact = _written(scope, writer, buffer, location)
    concurrent = location.concurrent_loop()
    if concurrent is not None and not is_exact:
        reason = f"loop {concurrent.var.name} runs side by side, and what an iteration writes of"
        raise refuse(f"{reason} {buffer.name} is not proved to be a box", concurrent, "not_proved")

    is_compact = location.is_scope and _fits(scope, readers, buffer, parts)
    if location.is_scope and not is_compact:
        parts = full_parts(buffer)
    shape = tuple(part.extent for part in parts) if is_compact else buffer.shape
    cache = cache_of(func, buffer, memory_scope, shape)
    name = fresh_block_name(func, f"{buffer.name}_{memory_scope}")
    around = {**(writer or site).extents, **extents_of(loops_on(location.path))}
    compact = cache if is_compact and not is_whole(buffer, parts) else None
    nest = copy_nest(name, buffer, cache, parts, around, compact=compact, domains=location.domains)
    func = insert_copy(scope, location, nest, cache)
    names = [reader.name for reader in readers]
    return redirect(func, names, buffer, cache, None if compact is None else parts), name


def _consumers(
    scope: BlockScope, site: PlacedBlock, buffer: Buffer, names: Sequence[str]
) -> list[PlacedBlock]:
    if not site.reads(buffer):
        raise scope.refuse(
            f"block {site.name} does not read {buffer.name}", site.realize, "invalid_argument"
        )
    if names:
        return named_readers(scope, site, buffer, names)
    return [reader for reader in scope.readers(buffer) if not reader.writes(buffer)]


def _written(
    scope: BlockScope, writer: PlacedBlock, buffer: Buffer, location: CopyLocation
) -> tuple[tuple[CopiedPart, ...], bool]:
    """Return the region that the writer writes around the copy, and whether it is all of it."""
    standing = location.standing(writer)
    box = box_of_writes(writer, buffer, standing)
    return parts_of(buffer, box), is_all_written(writer, buffer, box, standing)


def _come_first(scope: BlockScope, readers: Sequence[PlacedBlock], writer: PlacedBlock) -> bool:
    """Return whether blocks read what was there before a block writes."""
    return bool(readers) and all(scope.position(r) < scope.position(writer) for r in readers)


def _read(
    scope: BlockScope, buffer: Buffer, readers: Sequence[PlacedBlock], location: CopyLocation
) -> Box:
    """Return the region of a buffer to copy that was not written before in the scope."""
    if location.is_scope:
        return _read_in_scope(scope, buffer, readers)
    return hull_of([box_of_reads(r, buffer, location.standing(r)) for r in readers])


def _read_in_scope(scope: BlockScope, buffer: Buffer, readers: Sequence[PlacedBlock]) -> Box:
    """Return the region of a buffer that the scope's block declares as read; all of it if none."""
    everything: Box = (None,) * len(buffer.shape)
    if len(scope.path) == 1:
        return everything
    for region in scope.realize.block.reads:
        if region.buffer == buffer:
            box = _spans(region)
            fixed = set(scope_extents(scope.realize))
            return box if _holds(box, readers, buffer, fixed) else everything
    return everything


def _spans(region: BufferRegion) -> Box:
    return tuple(Span(normal(r.minimum), extent_or_unknown(r.extent)) for r in region.region)


def _holds(box: Box, readers: Sequence[PlacedBlock], buffer: Buffer, fixed: set[Var]) -> bool:
    """Return whether a box surely contains all elements that some blocks read of a buffer."""
    sizes = [extent_or_unknown(size) for size in buffer.shape]
    return all(
        contains(outer, inner, size, reader.extents)
        for reader in readers
        for outer, inner, size in zip(box, box_of_reads(reader, buffer, fixed), sizes, strict=True)
    )


def _fits(
    scope: BlockScope, readers: Sequence[PlacedBlock], buffer: Buffer, parts: Sequence[CopiedPart]
) -> bool:
    """Return whether a buffer of only some parts suffices for readers of a scope."""
    if is_whole(buffer, parts):
        return True
    box = tuple(Span(part.low, extent_or_unknown(part.extent)) for part in parts)
    fixed = set(scope_extents(scope.realize))
    return (
        _holds(box, readers, buffer, fixed)
        and stay_in_parts(readers, buffer, parts)
        and not any(is_passed_on(reader.realize, buffer) for reader in readers)
    )
