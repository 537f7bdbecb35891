"""Cache the elements that are written in an iteration of a loop: `write_at`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Buffer,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import starts_anew
from compiler.schedule.rewrite.cache import (
    box_of_writes,
    cache_of,
    child_position,
    hull_of,
    insert_copy,
    is_all_written,
    require_memory_scope,
    require_steady_indices,
)
from compiler.schedule.rewrite.copy_at import body_of_loop, copy_block, parts_inside
from compiler.schedule.rewrite.copy_block import redirect
from compiler.schedule.tree.tree import fresh_block_name


def write_at(
    func: PrimFunc, loop: Var, block: str, write_index: int, memory_scope: str
) -> tuple[PrimFunc, str]:
    """Write, in each iteration of a loop, to a new buffer, and copy that to the old one.

    One block copies it, with the loops inside. Its annotation "auto_copy" asks passes for a layout.

    Args:
        loop: A loop around the block.
        write_index: The number of the write among those of the block.
        memory_scope: The memory of the new buffer: "global", "shared", "local", ...

    Requires:
        The block is under the loop, in its scope, and has such a write; `memory_scope` is valid.
        Under the loop no block reads the buffer after the last block that writes it. Blocks there
        that read it find elements that were written there before. In each iteration one block
        writes all of the box that all write, which is provably in the buffer. No block writes what
        the indices load from the first of these blocks on. No loop around is vectorized. No opaque
        call takes the storage of the buffer undeclared.

    Rewrites:
        for i in range(n):                 for i in range(n):
            for j in range(4):                 for j in range(4):
                C[i, j] = f(A[i, j])   ->          C_shared[i, j] = f(A[i, j])
                                               for ax0 in range(4):
                                                   C[i, ax0] = C_shared[i, ax0]

        In shared memory the new buffer holds what all threads of a block write.

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("write_at", func)
    body = body_of_loop(func, loop, block, ("write", write_index), refuse)
    buffer, top = body.buffer, body.loop
    require_memory_scope(memory_scope, top, refuse)
    writers = body.touching("write")
    position = max(child_position(top, site) for site in writers) + 1
    for site in body.sites:
        if child_position(top, site) >= position:
            reason = f"block {site.name} reads {buffer.name} after it is written under loop"
            raise refuse(f"{reason} {loop.name}", site.realize, "dependence")
        before = [w for w in writers if body.scope.position(w) < body.scope.position(site)]
        _require_own_values(site, before, buffer, refuse)
    location = body.location(position)
    fixed = {site: body.standing(site, memory_scope) for site in writers}
    box = hull_of([box_of_writes(site, buffer, fixed[site]) for site in writers])
    if not any(is_all_written(site, buffer, box, fixed[site]) for site in writers):
        reason = f"no block is proved to write all of a box of {buffer.name} in one iteration"
        raise refuse(f"{reason} of loop {loop.name}", top, "dependence")
    parts = parts_inside(body, box, refuse)
    require_steady_indices(body.scope, (part.low.to_expr() for part in parts), location, writers)
    cache = cache_of(func, buffer, memory_scope)
    name = fresh_block_name(func, f"{buffer.name}_{memory_scope}")
    copy = copy_block(name, cache, buffer, parts, body)
    func = insert_copy(body.scope, location, copy, cache)
    return redirect(func, [site.name for site in body.sites], buffer, cache), name


def _require_own_values(
    site: PlacedBlock, before: list[PlacedBlock], buffer: Buffer, refuse: Refuse
) -> None:
    """Refuse if a block may read elements that were not written before under the same loop."""
    if not site.reads(buffer) or (site.writes(buffer) and starts_anew(site)):
        return
    if not any(covers_reads(writer, site, buffer) for writer in before):
        reason = f"block {site.name} may read what {buffer.name} held before the loop"
        raise refuse(reason, site.realize, "dependence")
