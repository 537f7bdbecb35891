"""What a block writes and reads while some loops stand still; whether the one covers the other."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import Buffer, IterVar, Var
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.region import Box, Span, contains, span_of
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.guard import covers_range, dense_box, dense_spans
from compiler.schedule.legality.placed_block import PlacedBlock

_NONE: frozenset[Var] = frozenset()


def read_box(site: PlacedBlock, access: BlockAccess, fixed: set[Var]) -> Box:
    """Return a box that holds what one access touches while the loops not `fixed` run."""
    extents = {**site.extents, **access.inner}
    return tuple(span_of(form, fixed, extents) for form in site.indices(access))


def finished_box(
    site: PlacedBlock, buffer: Buffer, fixed: AbstractSet[Var], *, is_certain: bool = False
) -> tuple[Span, ...] | None:
    """Return the box of a buffer that a block finishes while the loops not `fixed` run.

    The block makes all that it ever makes of the box, reductions included. Elements outside the
    buffer do not count. None if that can't be proved.

    Args:
        is_certain: Whether each element must surely be written; else it may be left as it was.
    """
    if isinstance(site.kind, Unclassified):
        return None
    if site.kind in ("update", "in_place") and not (
        {loop.var for loop in site.loops} <= determined(site.values, site.extents)
    ):
        return None
    return _written_box(site, buffer, fixed, is_certain=is_certain)


def written_box(
    site: PlacedBlock, buffer: Buffer, fixed: AbstractSet[Var]
) -> tuple[Span, ...] | None:
    """Return the box of a buffer that a block writes while the loops not `fixed` run.

    Of a reduction, the elements need not be finished.
    """
    return _written_box(site, buffer, fixed, is_final=False)


def _written_box(
    site: PlacedBlock,
    buffer: Buffer,
    fixed: AbstractSet[Var],
    *,
    is_certain: bool = False,
    is_final: bool = True,
) -> tuple[Span, ...] | None:
    for access in reversed(site.facts.writes):
        if access.buffer == buffer and (access.is_certain or not is_certain):
            box = dense_box(site, access, fixed, is_final=is_final)
            if box is not None:
                return box
    return None


def is_whole(span: Span, iter_var: IterVar) -> bool:
    """Tell whether a span holds the whole range of an iterator, wherever the loops stand."""
    return covers_range(span, iter_var.extent)


def runs_whole_domain(site: PlacedBlock) -> bool:
    """Tell whether a block surely runs for every point of its iterators' ranges."""
    spans = dense_spans(site, set())
    return spans is not None and all(map(is_whole, spans, site.block.iter_vars))


def writes_whole(site: PlacedBlock, buffer: Buffer) -> bool:
    """Tell whether a block surely finishes every element of a buffer, by the end."""
    box = finished_box(site, buffer, set(), is_certain=True)
    return box is not None and all(map(covers_range, box, buffer.shape))


def share_loops(a: PlacedBlock, b: PlacedBlock) -> bool:
    """Tell whether some loop is around both of two blocks."""
    return bool(a.loops and b.loops and a.loops[0] is b.loops[0])


def _common(a: PlacedBlock, b: PlacedBlock) -> set[Var]:
    """Return what stands still while two blocks of a scope run: their common loops, and above."""
    loops = {x.var for x, y in zip(a.loops, b.loops, strict=False) if x is y}
    return loops | (set(a.extents) - {loop.var for loop in a.loops})


def covers_reads(
    writer: PlacedBlock,
    reader: PlacedBlock,
    buffer: Buffer,
    *,
    again: AbstractSet[Var] = _NONE,
    is_certain: bool = False,
) -> bool:
    """Tell whether `writer` finishes all that `reader` reads while their common loops stand.

    Args:
        again: Common loops in whose last iteration the reader does all of its work again.
        is_certain: Whether each element must surely be written.
    """
    common = _common(writer, reader)
    written = finished_box(writer, buffer, common - again, is_certain=is_certain)
    if written is None:
        return False
    extents = {**writer.extents, **reader.extents}
    sizes = [extent_or_unknown(size) for size in buffer.shape]
    return all(
        all(
            contains(outer, inner, size, extents)
            for outer, inner, size in zip(
                written, read_box(reader, access, common), sizes, strict=True
            )
        )
        for access in reader.facts.reads
        if access.buffer == buffer
    )


def is_finished_for(
    writer: PlacedBlock, reader: PlacedBlock, again: AbstractSet[Var] = _NONE
) -> bool:
    """Tell whether a block has finished what another one reads of it, whenever that runs.

    Args:
        again: Common loops in whose last iteration the reader does all of its work again.
    """
    if not share_loops(writer, reader):
        return True
    shared = writer.facts.written_buffers() & reader.facts.read_buffers()
    return all(covers_reads(writer, reader, buffer, again=again) for buffer in shared)
