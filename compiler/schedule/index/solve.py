"""Which values of a block's iterators make its indices fall into a box.

Only the iterators are solved for; the box is in terms of loops outside of the block. A map of
indices that is inverted as a whole, with its padding, is `index_map_inverse`.

Example, with `v0` below 4 and `v1` below 8, and a box of the 8 indices from `i * 8` on:

    v0 * 8 + v1        is in the box if v0 is i; v1 takes all of its values
    v // 8 and v % 8   are `i` and `j` if v is i * 8 + j
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, IterSplit, split_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Block, Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.index.index_map import IndexMap, IndexMapError
from compiler.schedule.index.index_map_inverse import inverse_of
from compiler.schedule.index.region import Span, quotient, remainder

_Part: TypeAlias = tuple[IterSplit, Span]
"""A split of an iterator, and the span that it lies in."""


def solve_sum(
    form: Affine, span: Span, sizes: Extents, extents: Extents, width: int = 1
) -> dict[Var, Span | None]:
    """Return spans of iterators that hold all points at which a sum of them lies in a span.

    The sum is one of splits: `v0 * 8 + v1` with v1 below 8. None stands for the whole range.

    Args:
        sizes: The extents of the iterators.
        extents: The extents of what the span names.
        width: How many integers from the sum on have to be looked at.
    """
    if form.terms and all(scale < 0 for _, scale in form.terms) and width == 1:
        # A sum lies in a span just where its opposite lies in the mirror image.
        low = span.low.scaled(-1) + Affine((), 1 - span.extent, span.low.dtype)
        form, span = form.scaled(-1), Span(low, span.extent)
    terms = sorted(form.terms, key=lambda term: -term[1])
    iterators = [atom for atom, _ in terms if isinstance(atom, Var) and atom in sizes]
    unknown: dict[Var, Span | None] = dict.fromkeys(iterators)
    if len(iterators) < len(terms) or not terms:
        return unknown
    span = Span(span.low + Affine((), -form.const, span.low.dtype), span.extent)
    next_scale = terms[-1][1]
    if next_scale < width:
        return unknown
    for var, (_, scale) in zip(reversed(iterators), reversed(terms), strict=True):
        if scale != next_scale:
            return unknown
        next_scale = scale * sizes[var]
    spans: dict[Var, Span | None] = {}
    for number, (var, (_, scale)) in enumerate(zip(iterators, terms, strict=True)):
        part = quotient(span, scale, extents) if scale > 1 else span
        spans[var] = part if number == 0 else remainder(part, sizes[var], extents)
    return spans


def solve_splits(
    dimensions: Sequence[tuple[Affine, Span]], sizes: Extents
) -> dict[Var, Span] | None:
    """Return the spans of iterators whose splits lie in given spans: `v // 8` and `v % 8`.

    None if an index is no split of an iterator, or if the values of an iterator are no span.
    """
    parts: dict[Var, list[_Part]] = {}
    for form, span in dimensions:
        split = split_of(form.terms[0][0], sizes) if len(form.terms) == 1 else None
        if split is None or form.terms[0][1] != 1 or not isinstance(split.source, Var):
            return None
        moved = Span(span.low + Affine((), -form.const, span.low.dtype), span.extent)
        parts.setdefault(split.source, []).append((split, moved))
    spans: dict[Var, Span] = {}
    for var, parts_of_var in parts.items():
        span_of_var = _joined(sorted(parts_of_var, key=lambda part: -part[0].low))
        if span_of_var is None:
            return None
        spans[var] = span_of_var
    return spans


def _joined(parts: Sequence[_Part]) -> Span | None:
    """Return the span of a value from those of its splits, the coarsest first."""
    coarsest = parts[0][0]
    low = parts[0][1].low.scaled(0)
    extent, end = 1, coarsest.low * coarsest.extent
    if end < coarsest.limit:
        return None
    for split, span in parts:
        is_next = split.low * split.extent == end
        if not is_next or (extent > 1 and not _is_whole(split, span)):
            return None
        if _is_whole(split, span):
            extent *= split.extent
        else:
            low += span.low.scaled(split.low)
            extent = span.extent
        end = split.low
    return Span(low, extent * end)


def _is_whole(split: IterSplit, span: Span) -> bool:
    """Check that a span holds all values of a split."""
    low = span.low
    return not low.terms and low.const <= 0 <= low.const + span.extent - split.extent


def without_units(form: Affine, extents: Extents) -> Affine:
    """Return a form without the variables that take one value: that is zero."""
    terms = tuple(
        (atom, scale)
        for atom, scale in form.terms
        if not (isinstance(atom, Var) and extents.get(atom) == 1)
    )
    return Affine(terms, form.const, form.dtype)


def iterators_at(
    block: Block,
    indices: Sequence[Expr],
    point: Sequence[Expr],
    extents: Extents,
    shape: Sequence[Expr],
) -> dict[Var, Expr] | None:
    """Return the values of a block's iterators at which some indices are a point.

    None if the indices do not determine the iterators. The values may leave the iterators' ranges.

    Args:
        indices: Indices in terms of the iterators, one a dimension.
        point: The values of the indices.
        extents: The extents of what the point names.
        shape: The extents of the indexed buffer.
    """
    values = _by_dimension(block, indices, point, extents)
    return _by_inverse(block, indices, point, shape) if values is None else values


def _by_inverse(
    block: Block, indices: Sequence[Expr], point: Sequence[Expr], shape: Sequence[Expr]
) -> dict[Var, Expr] | None:
    """Return the iterators at a point if the indices map their domain to a whole buffer.

    `A[(v0 * 16 + v1) // 8, (v0 * 16 + v1) % 8]` is such a map.
    """
    iterators = tuple(i.var for i in block.iter_vars)
    domain = [i.extent for i in block.iter_vars]
    if not all(isinstance(size, IntImm) for size in (*domain, *shape)) or not domain:
        return None
    index_map = IndexMap(iterators, tuple(indices))
    try:
        inverse = inverse_of(index_map, domain)
        image = index_map.map_shape([extent_or_unknown(size) for size in domain])
    except IndexMapError:
        return None
    if inverse.has_padding or image != tuple(extent_or_unknown(size) for size in shape):
        return None
    places = dict(zip(inverse.index_map.params, point, strict=True))
    results = (substitute(result, places) for result in inverse.index_map.results)
    return dict(zip(iterators, results, strict=True))


def _by_dimension(
    block: Block, indices: Sequence[Expr], point: Sequence[Expr], extents: Extents
) -> dict[Var, Expr] | None:
    """Return the iterators at a point if each dimension, or its splits, determine some."""
    sizes = {i.var: extent_or_unknown(i.extent) for i in block.iter_vars}
    units: dict[Var, Expr] = {v: IntImm(0, dtype_of(v)) for v, n in sizes.items() if n == 1}
    solutions: list[tuple[Var, Expr]] = []
    with_splits: list[tuple[Affine, Span]] = []
    for index, wanted in zip(indices, point, strict=True):
        if isinstance(index, Var) and index in sizes:
            solutions.append((index, wanted))
            continue
        form = normal(substitute(index, units), sizes)
        span = Span(without_units(normal(wanted, extents), extents), 1)
        solved = solve_sum(form, span, sizes, extents)
        has_gaps = all(abs(scale) > 1 for _, scale in form.terms)
        if not form.terms:
            # A constant index is the point only if both are the same number.
            if (span.low - form).terms or span.low.const != form.const:
                return None
        elif has_gaps or any(part is None for part in solved.values()) or not solved:
            with_splits.append((form, span))
        else:
            solutions += ((v, part.low.to_expr()) for v, part in solved.items() if part is not None)
    joined = solve_splits(with_splits, sizes) if with_splits else {}
    if joined is None or any(part.extent != 1 for part in joined.values()):
        return None
    for var, part in joined.items():
        fine_first = Affine(part.low.terms[::-1], part.low.const, part.low.dtype)
        solutions.append((var, fine_first.to_expr()))
    # Two values of one iterator need not agree.
    names = [var for var, _ in solutions if var not in units]
    if len(set(names)) < len(names) or not sizes.keys() <= units.keys() | set(names):
        return None
    return {**units, **dict(solutions)}
