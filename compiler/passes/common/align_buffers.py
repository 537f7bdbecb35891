"""Pad buffers for the alignment that blocks request (`T.sblock_attr buffer_dim_align`).

The step from one index of an axis to the next becomes `factor * k + offset` elements. To get
there, the pass makes the next axis longer, if some length does it. Results do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from compiler.ir.core.nodes import AnnotationValue, Block, BlockRealize, Buffer, Expr, IntImm, Stmt
from compiler.ir.core.visit import walk_stmts

KEY = "buffer_dim_align"

_MAX_PADDING = 1024  # more padding than this wastes memory

Alignment = Mapping[int, tuple[int, int]]
"""The factor and the offset of each axis."""


def alignments_of(body: Stmt) -> dict[Buffer, dict[int, tuple[int, int]]]:
    """Return the alignments that the blocks of a program request, without the invalid ones."""
    alignments: dict[Buffer, dict[int, tuple[int, int]]] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, BlockRealize):
            for index, axis, factor, offset in _entries(stmt.block):
                buffer = stmt.block.writes[index].buffer
                alignments.setdefault(buffer, {})[axis] = (factor, offset)
    return alignments


def _entries(block: Block) -> list[tuple[int, int, int, int]]:
    value = dict(block.annotations).get(KEY, ())
    entries: list[tuple[int, int, int, int]] = []
    for item in value if isinstance(value, tuple) else ():
        entry = _entry(item)
        if entry is not None and 0 <= entry[0] < len(block.writes) and entry[2] > 0:
            entries.append(entry)
    return entries


def _entry(item: AnnotationValue) -> tuple[int, int, int, int] | None:
    match item:
        case (int() as index, int() as axis, int() as factor, int() as offset):
            return index, axis, factor, offset
        case _:
            return None


def aligned(extents: tuple[int, ...], alignment: Alignment) -> tuple[int, ...]:
    """Return the smallest extents of a buffer whose axes are aligned."""
    new = list(extents)
    for axis in reversed(range(len(new) - 1)):
        if axis in alignment:
            factor, offset = alignment[axis]
            inner = prod(new[axis + 2 :])
            longer = range(new[axis + 1], new[axis + 1] + min(factor, _MAX_PADDING))
            fits = (n for n in longer if (n * inner - offset) % factor == 0)
            new[axis + 1] = next(fits, new[axis + 1])
    return tuple(new)


def aligned_shape(shape: tuple[Expr, ...], alignment: Alignment) -> tuple[Expr, ...]:
    """Return the shape of a buffer whose axes are aligned; symbolic strides stay as they are."""
    first = next((n for n, e in reversed([*enumerate(shape)]) if not isinstance(e, IntImm)), -1) + 1
    # The stride of the axis before them is that of the literal extents, too.
    literal = tuple(extent.value for extent in shape[first:] if isinstance(extent, IntImm))
    inner = {axis - first + 1: value for axis, value in alignment.items() if axis >= first - 1}
    _, *longer = aligned((1, *literal), inner)
    return (*shape[:first], *map(IntImm, longer))
