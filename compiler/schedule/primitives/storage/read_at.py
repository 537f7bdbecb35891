"""Cache the elements that are read in an iteration of a loop: `read_at`."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.cache import (
    box_of_reads,
    cache_of,
    child_position,
    hull_of,
    insert_copy,
    require_memory_scope,
    require_steady_indices,
)
from compiler.schedule.rewrite.copy_at import body_of_loop, copy_block, parts_inside
from compiler.schedule.rewrite.copy_block import redirect
from compiler.schedule.tree.tree import fresh_block_name


def read_at(
    func: PrimFunc, loop: Var, block: str, read_index: int, memory_scope: str
) -> tuple[PrimFunc, str]:
    """Copy, in each iteration of a loop, the elements that are read of a buffer; read the copy.

    One block copies them, with the loops inside. Its annotation "auto_copy" asks passes for a
    layout.

    Args:
        loop: A loop around the block.
        read_index: The number of the read among those of the block.
        memory_scope: The memory of the copy: "global", "shared", "local", ...

    Requires:
        The block is under the loop, in its scope, and has such a read; `memory_scope` is valid.
        Under the loop no block writes the buffer, or what the indices load, after the first block
        that reads it. If the loop or loops around it are concurrent, no block writes it at all. The
        region that is read is provably in the buffer. No loop around is vectorized. No opaque call
        takes the storage of the buffer undeclared.

    Rewrites:
        for i in range(n):                 for i in range(n):
            for j in range(4):                 for ax0 in range(4):
                B[i, j] = f(A[i, j])   ->          A_shared[i, ax0] = A[i, ax0]
                                               for j in range(4):
                                                   B[i, j] = f(A_shared[i, j])

        In shared memory the copy holds what all threads of a block read.

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("read_at", func)
    body = body_of_loop(func, loop, block, ("read", read_index), refuse)
    buffer, top = body.buffer, body.loop
    require_memory_scope(memory_scope, top, refuse)
    readers = body.touching("read")
    writers = [site for site in body.sites if site.writes(buffer)]
    position = min(child_position(top, site) for site in readers)
    for site in writers:
        if child_position(top, site) >= position:
            reason = f"block {site.name} writes {buffer.name} after it is read under loop"
            raise refuse(f"{reason} {loop.name}", site.realize, "dependence")
    location = body.location(position)
    concurrent = location.concurrent_loop()
    if writers and concurrent is not None:
        reason = f"block {writers[0].name} writes {buffer.name} in loop {concurrent.var.name}"
        raise refuse(f"{reason}, which runs side by side", writers[0].realize, "dependence")
    boxes = [box_of_reads(site, buffer, body.standing(site, memory_scope)) for site in readers]
    parts = parts_inside(body, hull_of(boxes), refuse)
    require_steady_indices(body.scope, (part.low.to_expr() for part in parts), location, readers)
    cache = cache_of(func, buffer, memory_scope)
    name = fresh_block_name(func, f"{buffer.name}_{memory_scope}")
    copy = copy_block(name, buffer, cache, parts, body)
    func = insert_copy(body.scope, location, copy, cache)
    return redirect(func, [site.name for site in readers], buffer, cache), name
