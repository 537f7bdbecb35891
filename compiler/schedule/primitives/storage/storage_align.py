"""Align the stride of a buffer dimension: `storage_align`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.nodes import (
    Annotations,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.primitives.storage.set_scope import allocation_site
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.tree.tree import block_path, realize_at, replace_at, with_block

KEY = "buffer_dim_align"

_Alignments = dict[tuple[int, int], tuple[int, int]]
"""The factor and the offset by the number of a block's write and the axis of its buffer."""


def storage_align(
    func: PrimFunc, block: str, write_index: int, *, axis: int, factor: int, offset: int
) -> PrimFunc:
    """Align a dimension: request a stride of `factor * k + offset` elements for an axis.

    Threads along the axis then use different banks of a memory. Results do not change: lowering
    pads the buffer as far as it can.

    Args:
        write_index: The number of the write among those of the block.
        axis: The dimension; a negative one counts from the last.

    Requires:
        The block has such a write, to a buffer that a block around it allocates and that has such
        an axis. The factor is positive. An existing annotation has the form that this primitive
        writes.

    Rewrites:
        with T.sblock("B"):   ->   with T.sblock("B"):
            B[i, j] = ...              T.sblock_attr({"buffer_dim_align":
                                                      [[write_index, axis, factor, offset]]})
                                       B[i, j] = ...

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("storage_align", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    buffer = region_buffer(realize.block.writes, write_index, "write", realize, refuse)
    if factor < 1:
        raise refuse(f"factor {factor} is not positive", realize, "invalid_argument")
    rank = len(buffer.shape)
    if not -rank <= axis < rank:
        raise refuse(
            f"{buffer.name} has {rank} dimension(s): there is no axis {axis}",
            realize,
            "invalid_argument",
        )
    allocation_site(path, buffer, refuse)
    axis %= rank
    notes = realize.block.annotations
    alignments = _noted_alignments(notes, realize, refuse)
    alignments[write_index, axis] = (factor, offset)
    return replace_at(
        func,
        path,
        with_block(
            realize, replace(realize.block, annotations=_with_alignments(notes, alignments))
        ),
    )


def _noted_alignments(notes: Annotations, at: object, refuse: Refuse) -> _Alignments:
    """Return the alignments in a block's annotation."""
    value = dict(notes).get(KEY, ())
    alignments: _Alignments = {}
    for item in value if isinstance(value, tuple) else (value,):
        numbers = tuple(n for n in item if isinstance(n, int)) if isinstance(item, tuple) else ()
        if len(numbers) != 4 or numbers != item:
            reason = f'the annotation "{KEY}" is not a list of buffer, axis, factor and offset'
            raise refuse(reason, at, "invalid_argument")
        index, axis, factor, offset = numbers
        alignments[index, axis] = (factor, offset)
    return alignments


def _with_alignments(notes: Annotations, alignments: _Alignments) -> Annotations:
    value = tuple((*target, *alignment) for target, alignment in alignments.items())
    return tuple({**dict(notes), KEY: value}.items())
