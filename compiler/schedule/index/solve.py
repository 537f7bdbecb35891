"""Which values of a block's iterators make its indices fall into a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, split_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Block, Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.index.region import Span, quotient, remainder


def solve_sum(
    form: Affine, span: Span, sizes: Extents, extents: Extents, width: int = 1
) -> dict[Var, Span | None]:
    """Return spans of iterators that hold all points at which a sum of them lies in a span.

    The sum is one of digits: `v0 * 8 + v1` with v1 below 8. None stands for the whole range.

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


def solve_digits(
    dimensions: Sequence[tuple[Affine, Span]], sizes: Extents
) -> dict[Var, Span] | None:
    """Return the spans of iterators whose digits lie in given spans: `v // 8` and `v % 8`.

    None if an index is no digit of an iterator, or if the values of an iterator are no span.
    """
    pieces: dict[Var, list[_Piece]] = {}
    for form, span in dimensions:
        atom, scale = form.terms[0] if len(form.terms) == 1 else (None, 0)
        digit = None if atom is None else split_of(atom, sizes)
        if digit is None or scale != 1 or not isinstance(digit.source, Var):
            return None
        moved = Span(span.low + Affine((), -form.const, span.low.dtype), span.extent)
        pieces.setdefault(digit.source, []).append(_Piece(digit.low, digit.extent, moved))
    spans: dict[Var, Span] = {}
    for var, digits in pieces.items():
        span_of_var = _joined(sorted(digits, key=lambda piece: -piece.place), sizes[var])
        if span_of_var is None:
            return None
        spans[var] = span_of_var
    return spans


@dataclass(frozen=True, slots=True)
class _Piece:
    """A digit `v // place % count` and the span that it lies in."""

    place: int
    count: int
    span: Span

    @property
    def is_whole(self) -> bool:
        low = self.span.low
        return not low.terms and low.const <= 0 <= low.const + self.span.extent - self.count


def _joined(pieces: Sequence[_Piece], size: int) -> Span | None:
    """Return the span of a value from those of its digits, the coarsest first."""
    if pieces[0].place * pieces[0].count < size:
        return None
    low = pieces[0].span.low.scaled(0)
    extent, place = 1, pieces[0].place * pieces[0].count
    for piece in pieces:
        is_next = piece.place * piece.count == place
        if not is_next or (extent > 1 and not piece.is_whole):
            return None
        if piece.is_whole:
            extent *= piece.count
        else:
            low += piece.span.low.scaled(piece.place)
            extent = piece.span.extent
        place = piece.place
    return Span(low, extent * place)


def without_units(form: Affine, extents: Extents) -> Affine:
    """Return a form without the variables that take one value: that is zero."""
    terms = tuple(
        (atom, scale)
        for atom, scale in form.terms
        if not (isinstance(atom, Var) and extents.get(atom) == 1)
    )
    return Affine(terms, form.const, form.dtype)


def iterators_at(
    block: Block, indices: Sequence[Expr], point: Sequence[Expr], extents: Extents
) -> dict[Var, Expr] | None:
    """Return the values of a block's iterators at which some indices are a point.

    None if the indices do not tell the iterators. The values may leave the iterators' ranges.

    Args:
        indices: Indices in terms of the iterators, one a dimension.
        point: What they shall be.
        extents: The extents of what the point names.
    """
    sizes = {i.var: extent_or_unknown(i.extent) for i in block.iter_vars}
    units: dict[Var, Expr] = {v: IntImm(0, dtype_of(v)) for v, n in sizes.items() if n == 1}
    told: list[tuple[Var, Expr]] = []
    digits: list[tuple[Affine, Span]] = []
    for index, wanted in zip(indices, point, strict=True):
        if isinstance(index, Var) and index in sizes:
            told.append((index, wanted))
            continue
        form = normal(substitute(index, units), sizes)
        span = Span(without_units(normal(wanted, extents), extents), 1)
        solved = solve_sum(form, span, sizes, extents)
        has_gaps = all(abs(scale) > 1 for _, scale in form.terms)
        if not form.terms:
            # The point may lie elsewhere; only in a dimension of a single index it can't.
            if (span.low - form).terms or span.low.const != form.const:
                return None
        elif has_gaps or any(part is None for part in solved.values()) or not solved:
            digits.append((form, span))
        else:
            told += ((v, part.low.to_expr()) for v, part in solved.items() if part is not None)
    joined = solve_digits(digits, sizes) if digits else {}
    if joined is None or any(part.extent != 1 for part in joined.values()):
        return None
    for var, part in joined.items():
        fine_first = Affine(part.low.terms[::-1], part.low.const, part.low.dtype)
        told.append((var, fine_first.to_expr()))
    # What tells an iterator twice need not agree with itself.
    names = [var for var, _ in told if var not in units]
    if len(set(names)) < len(names) or not sizes.keys() <= units.keys() | set(names):
        return None
    return {**units, **dict(told)}
