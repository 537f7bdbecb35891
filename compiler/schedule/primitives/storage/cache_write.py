"""Cache a buffer that a block writes: `cache_write`."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.nodes import (
    Buffer,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.coverage import share_loops
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import starts_anew
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import (
    CopyLocation,
    box_of_writes,
    cache_of,
    insert_copy,
    is_all_written,
    named_readers,
    place_before,
    region_buffer,
    require_copy_holds,
    require_memory_scope,
    require_no_pointer,
)
from compiler.schedule.rewrite.copy_block import (
    copy_nest,
    is_passed_on,
    is_whole,
    parts_of,
    redirect,
    stay_in_parts,
)
from compiler.schedule.tree.tree import extents_of, fresh_block_name, loops_on


def cache_write(
    func: PrimFunc, block: str, write_index: int, memory_scope: str, consumers: Sequence[str] = ()
) -> tuple[PrimFunc, str]:
    """Let a block write to a new buffer, and copy that to the old one.

    The copy comes before the first block after it that reads the buffer, else after everything in
    the scope. Outside of any loop the new buffer has the shape of its contents, else that of the
    old one.

    Args:
        write_index: The number of the write among those of the block.
        memory_scope: The memory of the new buffer: "global", "shared", "local", ...
        consumers: Blocks that read the new buffer instead of the old one.

    Requires:
        The block has such a write, `memory_scope` is valid. The block is the only one of the scope
        that writes the buffer, and does not read its previous contents. Each consumer is in
        the scope, reads the buffer, and comes after the block. No block in the same loops reads
        the buffer before it. In one iteration of the loops around the copy, the block writes a box
        of the buffer. None of those loops is vectorized. No opaque call takes the storage of the
        buffer undeclared.

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
    buffer = region_buffer(site.block.writes, write_index, "write", site.realize, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    require_no_pointer(scope, buffer)
    require_written_anew(scope, site, buffer)
    chosen = named_readers(scope, site, buffer, consumers)
    location = place_after(scope, site, buffer, chosen)
    require_copy_holds(scope, buffer, site, chosen, location)

    standing = location.standing(site)
    box = box_of_writes(site, buffer, standing)
    if not is_all_written(site, buffer, box, standing):
        require_harmless(scope, site, buffer, location)
    parts = parts_of(buffer, box)
    users = [site, *chosen]
    is_compact = (
        location.is_scope
        and stay_in_parts(users, buffer, parts)
        and not any(is_passed_on(u.realize, buffer) for u in users)
    )
    shape = tuple(part.extent for part in parts) if is_compact else buffer.shape
    cache = cache_of(func, buffer, memory_scope, shape)
    name = fresh_block_name(func, f"{buffer.name}_{memory_scope}")
    around = {**site.extents, **extents_of(loops_on(location.path))}
    compact = cache if is_compact and not is_whole(buffer, parts) else None
    nest = copy_nest(name, cache, buffer, parts, around, compact=compact, domains=location.domains)
    func = insert_copy(scope, location, nest, cache)
    names = [user.name for user in users]
    return redirect(func, names, buffer, cache, None if compact is None else parts), name


def require_written_anew(scope: BlockScope, site: PlacedBlock, buffer: Buffer) -> None:
    """Refuse unless a block alone writes a buffer, and reads none of its previous contents."""
    if not site.writes(buffer):
        raise scope.refuse(
            f"block {site.name} does not write {buffer.name}", site.realize, "invalid_argument"
        )
    scope.require_only_writer(site)
    require_no_old_values(site, buffer, scope.refuse)


def require_no_old_values(site: PlacedBlock, buffer: Buffer, refuse: Refuse) -> None:
    """Refuse if a block may read the contents that a buffer had before the block wrote to it."""
    if site.reads(buffer) and site.kind != "complete" and not starts_anew(site):
        reason = f"block {site.name} adds to what {buffer.name} held before"
        raise refuse(reason, site.realize, "block_kind")


def place_after(
    scope: BlockScope, site: PlacedBlock, buffer: Buffer, chosen: Sequence[PlacedBlock]
) -> CopyLocation:
    """Return the position at which a new buffer is copied to the old one.

    Args:
        chosen: The readers of the buffer that will not need it any more.
    """
    others = [r for r in scope.readers(buffer) if r is not site and r not in chosen]
    for reader in others:
        if scope.position(reader) < scope.position(site) and share_loops(reader, site):
            reason = f"block {reader.name} reads {buffer.name} before it is written"
            raise scope.refuse(f"{reason}, in loops around both", reader.realize, "dependence")
    after = [r for r in others if scope.position(r) > scope.position(site)]
    return place_before(scope, site, after)


def require_harmless(
    scope: BlockScope, site: PlacedBlock, buffer: Buffer, location: CopyLocation
) -> None:
    """Refuse if copying more than a block wrote could be seen.

    In a buffer of the scope it is invisible: elements that were written before are copied again,
    and others have no value. It is visible if the copies of two iterations are concurrent.
    """
    if not scope.is_local(buffer) or location.concurrent_loop() is not None:
        reason = f"block {site.name} is not proved to write a box of {buffer.name}"
        raise scope.refuse(f"{reason} before the place of the copy", site.realize, "not_proved")
