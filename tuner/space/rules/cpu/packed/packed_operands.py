"""Change the layouts of the operands of a block, in the blocks that produce them or in copies."""

from __future__ import annotations

from collections.abc import Callable

from compiler import te
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.rules.sketch_builder import SketchBuilder

Layout = Callable[..., tuple[te.Value, ...]]


def packed_operand(
    draft: SketchBuilder, name: str, read: TensorAccess, layout: Layout | None
) -> str | None:
    """Change the layout of a read of a block; return the block that writes the new layout.

    Return None for a parameter without a new layout.
    """
    schedule = draft.schedule
    maker = _maker(draft, name, read)
    if layout is None:
        return maker
    if maker is None:
        copy = draft.copy_input(schedule.get_block(name), read.buffer)
        maker = draft.block_name(copy)
    handle = schedule.get_block(maker)
    schedule.transform_layout(handle, ("write", 0), layout)
    schedule.transform_block_layout(handle, layout)
    return maker


def _maker(draft: SketchBuilder, name: str, read: TensorAccess) -> str | None:
    """Return the spatial block that produces an operand for this block alone."""
    for maker, facts in draft.block_facts().items():
        if facts.write.buffer != read.buffer or facts.is_reduction or maker in draft.scheduled:
            continue
        if not draft.is_intermediate(maker) or draft.consumers(maker) != [name]:
            continue
        if len(facts.reads) == 1 and _is_identity(facts.write):
            return maker
    return None


def _is_identity(access: TensorAccess) -> bool:
    rows = access.coefficients
    return all(
        coefficient == (dim == axis)
        for dim, row in enumerate(rows)
        for axis, coefficient in enumerate(row)
        if access.shape[dim] > 1
    )


def split_last(dim: int, tile: int) -> Layout:
    """Return the layout that makes `tile` neighbours along a dimension contiguous."""

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return (*i[:dim], i[dim] // tile, *i[dim + 1 :], i[dim] % tile)

    return layout
