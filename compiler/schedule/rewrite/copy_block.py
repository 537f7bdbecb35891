"""A block that copies a box of a buffer, and the redirection of other blocks to the copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.analysis.regions import access_regions
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_EXTENT
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Compare,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Range,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.schedule.index.range_guard import stays_below
from compiler.schedule.index.region import Box, Span
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.rewrite.rewrite_access import AccessRewriter, Indices, Mode, with_views
from compiler.schedule.tree.tree import find_block, replace_at

_NO_DOMAINS: Mapping[Var, Expr] = {}


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """The elements `low`, ..., `low + extent - 1` of a dimension."""

    low: Affine
    extent: Expr


def parts_of(buffer: Buffer, box: Box) -> tuple[CopiedPart, ...]:
    """Return the part of each dimension in a box; all of it if unknown."""
    return tuple(_part(size, span) for size, span in zip(buffer.shape, box, strict=True))


def _part(size: Expr, span: Span | None) -> CopiedPart:
    dtype = dtype_of(size)
    limit = extent_or_unknown(size)
    full_part = CopiedPart(Affine((), 0, dtype), size)
    if span is None or span.extent > MAX_EXTENT or _is_loaded(span.low):
        return full_part
    if span.extent >= limit and span.low.terms:
        return full_part
    low, extent = span.low, span.extent
    if not low.terms:
        start, stop = max(low.const, 0), min(low.const + extent, limit)
        if start >= stop or (start, stop) == (0, limit):
            return full_part
        low, extent = Affine((), start), stop - start
    return CopiedPart(Affine(low.terms, low.const, dtype), IntImm(extent, dtype))


def _is_loaded(low: Affine) -> bool:
    """Return whether an index depends on memory, so that the copy could read another value."""
    return any(isinstance(node, Load) for atom, _ in low.terms for node in walk(atom))


def full_parts(buffer: Buffer) -> tuple[CopiedPart, ...]:
    """Return the parts that cover all of a buffer."""
    return parts_of(buffer, (None,) * len(buffer.shape))


def copy_nest(
    name: str,
    source: Buffer,
    target: Buffer,
    parts: Sequence[CopiedPart],
    around: Extents,
    *,
    compact: Buffer | None = None,
    domains: Mapping[Var, Expr] = _NO_DOMAINS,
) -> Stmt:
    """Return loops that copy a box of one buffer to another.

    Args:
        name: The name of the block.
        parts: The box.
        around: The extents of the variables in the box.
        compact: The buffer that holds only the box, if one does.
        domains: The same extents, also those that are symbolic.
    """
    loops = [Var(f"ax{n}", dtype_of(part.extent)) for n, part in enumerate(parts)]
    iter_vars: list[IterVar] = []
    values: list[Expr] = []
    guards: list[Expr] = []
    other = source if compact is target else target
    indices: list[Expr] = []
    for number, (part, loop, size) in enumerate(zip(parts, loops, other.shape, strict=True)):
        var = Var(f"v{number}", loop.dtype)
        index = _plus(part.low, loop)
        span = Span(part.low, extent_or_unknown(part.extent))
        # A sum of loops that stays below is never less than its constant.
        if part.low.const < 0 or not stays_below(span, size, domains):
            guards.extend(_guards(part, index, size, around))
        iter_vars.append(IterVar(var, size if compact is None else part.extent, "spatial"))
        values.append(index if compact is None else loop)
        indices.append(var if compact is None else _plus(part.low, var))
    iterators: tuple[Expr, ...] = tuple(i.var for i in iter_vars)
    at = {source: iterators if compact is source else tuple(indices)}
    at[target] = iterators if compact is target else tuple(indices)
    block = Block(
        name,
        tuple(iter_vars),
        (point_of(source, at[source]),),
        (point_of(target, at[target]),),
        Store(target, at[target], Load(source, at[source])),
    )
    body: Stmt = BlockRealize(tuple(values), conjunction(tuple(guards)), block)
    for loop, part in zip(reversed(loops), reversed(parts), strict=True):
        body = For(loop, part.extent, body)
    return body


def _plus(low: Affine, var: Var) -> Expr:
    if not low.terms and low.const == 0:
        return var
    return BinOp("+", low.to_expr(), var)


def point_of(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """Return the region of one element."""
    return BufferRegion(buffer, tuple(Range(i, IntImm(1, dtype_of(i))) for i in indices))


def read_to_find(stmt: Stmt, source: Buffer) -> tuple[BufferRegion, ...]:
    """Return the regions that a copy reads to compute its indices."""
    return tuple(region for region in access_regions(stmt)[0] if region.buffer != source)


def _guards(part: CopiedPart, index: Expr, size: Expr, around: Extents) -> list[Expr]:
    """Return the conditions that keep an index in its dimension, without the proved ones."""
    if part.extent == size:
        return []
    dtype = dtype_of(size)
    interval = affine_bounds(part.low, around)
    guards: list[Expr] = []
    if interval is None or interval[0] < 0:
        guards.append(Compare(">=", index, IntImm(0, dtype)))
    limit = size.value if isinstance(size, IntImm) else 0
    if interval is None or interval[1] + extent_or_unknown(part.extent) > limit:
        guards.append(Compare("<", index, size))
    return guards


def is_whole(buffer: Buffer, parts: Sequence[CopiedPart]) -> bool:
    """Return whether parts cover all of a buffer."""
    return tuple(part.extent for part in parts) == buffer.shape


def is_passed_on(stmt: Stmt, buffer: Buffer) -> bool:
    """Return whether an opaque call below a statement takes the storage of a buffer."""
    return any(node is buffer.data for node in walk(stmt))


def stay_in_parts(
    users: Iterable[PlacedBlock], buffer: Buffer, parts: Sequence[CopiedPart]
) -> bool:
    """Return whether blocks access a buffer inside a box for all values of their iterators.

    The loops around a block may take fewer values together, as in `v0 = i; v1 = 1 - i`, but a block
    does not depend on the loops around it.
    """
    for user in users:
        around = {**user.extents, **extents_of_iterators(user.block)}
        for access in user.facts.accesses(buffer):
            extents = {**around, **access.inner}
            for index, part, size in zip(access.indices, parts, buffer.shape, strict=True):
                interval = affine_bounds(normal(index, extents) - part.low, extents)
                last = extent_or_unknown(part.extent) - 1
                is_inside = interval is not None and interval[0] >= 0 and interval[1] <= last
                if part.extent != size and not is_inside:
                    return False
    return True


def redirect(
    func: PrimFunc,
    names: Iterable[str],
    old: Buffer,
    new: Buffer,
    parts: Sequence[CopiedPart] | None = None,
) -> PrimFunc:
    """Return the program with one buffer replaced by another in some blocks.

    Args:
        parts: The box of the old buffer that the new one holds; None if they have the same shape.
    """

    def moved(indices: Indices, extents: Extents) -> Indices:
        if parts is None:
            return indices
        return tuple(
            index
            if not part.low.terms and part.low.const == 0
            else simplify(BinOp("-", index, part.low.to_expr()), extents)
            for index, part in zip(indices, parts, strict=True)
        )

    def region(r: BufferRegion, _: Block, __: Mode, extents: Extents) -> BufferRegion:
        minima = moved(tuple(part.minimum for part in r.region), extents)
        ranges = (Range(low, part.extent) for low, part in zip(minima, r.region, strict=True))
        return BufferRegion(new, tuple(ranges))

    rewriter = AccessRewriter(old, new, moved, region)
    for name in names:
        path = find_block(func, name)
        assert path is not None, "the blocks are in the program"
        func = replace_at(func, path, with_views(rewriter.stmt(path[-1], {}), old, new))
    return func
