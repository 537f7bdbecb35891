"""Remove what a block declares, but does not access: `unsafe_hide_buffer_access`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.analysis.regions import access_regions
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify_but_for_races
from compiler.schedule.error import refusal
from compiler.schedule.primitives.storage.transform_layout import BufferMode
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.tree.tree import block_path, realize_at, replace_at, with_block


def unsafe_hide_buffer_access(
    func: PrimFunc, block: str, mode: BufferMode, numbers: Sequence[int]
) -> PrimFunc:
    """Remove regions from those that a block declares.

    TVM hides accesses from the analysis of dependences in this way. Here that analysis reads the
    body of a block, so only regions that the body does not need can be removed.

    Args:
        mode: Whether they are among the reads or the writes.
        numbers: The numbers of the regions.

    Requires:
        The block has these regions, and does not access these buffers.

    Rewrites:
        reads(A[v], B[0:8])        ->    reads(A[v])
        C[v] = A[v]                      C[v] = A[v]

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("unsafe_hide_buffer_access", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    regions = realize.block.reads if mode == "read" else realize.block.writes
    for number in numbers:
        region_buffer(regions, number, mode, realize, refuse)
    remaining = tuple(region for number, region in enumerate(regions) if number not in numbers)
    inner = (
        replace(realize.block, reads=remaining)
        if mode == "read"
        else replace(realize.block, writes=remaining)
    )
    if symbolic_vars(func):
        # The verifier proves regions of constant extents only.
        accessed = access_regions(inner.body, inner.init, inner.match_buffers)
        touched = {region.buffer for region in accessed[0 if mode == "read" else 1]}
        for number in numbers:
            if regions[number].buffer in touched:
                name = regions[number].buffer.name
                raise refuse(f"the block accesses {name}", realize, "dependence")
    new = replace_at(func, path, with_block(realize, inner))
    try:
        verify_but_for_races(new)
    except VerifyError as error:
        raise refuse(f"the block accesses it: {error.message}", realize, "dependence") from None
    return new
