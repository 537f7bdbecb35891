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
    if layout is None:
        return _maker(draft, name, read)
    maker = _maker_or_copy(draft, name, read)
    handle = draft.schedule.get_block(maker)
    draft.schedule.transform_layout(handle, ("write", 0), layout)
    draft.schedule.transform_block_layout(handle, layout)
    return maker


def lengthen_operand(
    draft: SketchBuilder, name: str, read: TensorAccess, dim: int, extra: int
) -> None:
    """Let a dimension of a read of a block end in so many more elements, which are zeros.

    It becomes two dimensions, the first of a single element.
    """
    size = read.shape[dim] + extra

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return (*i[:dim], i[dim] // size, i[dim] % size, *i[dim + 1 :])

    handle = draft.schedule.get_block(_maker_or_copy(draft, name, read))
    draft.schedule.transform_layout(handle, ("write", 0), layout, pad_value=0)


def _maker_or_copy(draft: SketchBuilder, name: str, read: TensorAccess) -> str:
    """Return the block that produces an operand for this block alone, or copies it."""
    maker = _maker(draft, name, read)
    if maker is not None:
        return maker
    copy = draft.copy_input(draft.schedule.get_block(name), read.buffer)
    return draft.block_name(copy)


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
