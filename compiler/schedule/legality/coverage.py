"""The elements that a block writes and reads while some loops are fixed, and their inclusion."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import Buffer, If, IterVar, Var
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.region import Box, Span, contains, span_of
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.guard import covers_range, dense_box, dense_spans
from compiler.schedule.legality.placed_block import PlacedBlock

_NONE: frozenset[Var] = frozenset()


def read_box(site: PlacedBlock, access: BlockAccess, fixed: set[Var]) -> Box:
    """Return a box that contains the elements of one access while the loops not `fixed` run."""
    extents = {**site.extents, **access.inner}
    return tuple(span_of(form, fixed, extents) for form in site.indices(access))


def finished_box(
    site: PlacedBlock, buffer: Buffer, fixed: AbstractSet[Var], *, is_certain: bool = False
) -> tuple[Span, ...] | None:
    """Return the box of a buffer that a block finishes while the loops not `fixed` run.

    The block computes the final values of the box, reductions included. Elements outside the buffer
    do not count. Return None if that can't be proved.

    Args:
        is_certain: Whether each element must surely be written; else it may keep its value.
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

    For a reduction, the elements need not be finished.
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
    """Return whether a span contains an iterator's whole range, for all values of the loops."""
    return covers_range(span, iter_var.extent)


def runs_whole_domain(site: PlacedBlock) -> bool:
    """Return whether a block surely runs for every point of its iterators' ranges."""
    spans = dense_spans(site, set())
    return spans is not None and all(map(is_whole, spans, site.block.iter_vars))


def writes_whole(site: PlacedBlock, buffer: Buffer) -> bool:
    """Return whether a block surely finishes every element of a buffer in the end."""
    box = finished_box(site, buffer, set(), is_certain=True)
    return box is not None and all(map(covers_range, box, buffer.shape))


def share_loops(a: PlacedBlock, b: PlacedBlock) -> bool:
    """Return whether some loop is around both of two blocks."""
    return bool(a.loops and b.loops and a.loops[0] is b.loops[0])


def _common(a: PlacedBlock, b: PlacedBlock) -> set[Var]:
    """Return the variables that are fixed while two blocks of a scope run: of common loops."""
    loops = {x.var for x, y in zip(a.loops, b.loops, strict=False) if x is y}
    return loops | (set(a.extents) - {loop.var for loop in a.loops})


def _inside_conditions(writer: PlacedBlock, reader: PlacedBlock) -> tuple[PlacedBlock, PlacedBlock]:
    """Return two blocks without the conditions that are around both: either both run, or none."""
    shared = [
        stmt
        for stmt in writer.path
        if isinstance(stmt, If) and any(stmt is other for other in reader.path)
    ]
    if not shared:
        return writer, reader

    def without(site: PlacedBlock) -> PlacedBlock:
        return PlacedBlock(tuple(s for s in site.path if not any(s is each for each in shared)))

    return without(writer), without(reader)


def covers_reads(
    writer: PlacedBlock,
    reader: PlacedBlock,
    buffer: Buffer,
    *,
    again: AbstractSet[Var] = _NONE,
    is_certain: bool = False,
) -> bool:
    """Return whether `writer` finishes all reads of `reader` while their common loops are fixed.

    Args:
        again: Common loops in whose last iteration the reader repeats all of its work.
        is_certain: Whether each element must surely be written.
    """
    if not again:
        writer, reader = _inside_conditions(writer, reader)
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
    """Return whether a block has finished all inputs of another one, whenever that runs.

    Args:
        again: Common loops in whose last iteration the reader repeats all of its work.
    """
    if not share_loops(writer, reader):
        return True
    shared = writer.facts.written_buffers() & reader.facts.read_buffers()
    return all(covers_reads(writer, reader, buffer, again=again) for buffer in shared)
