"""Which values of a block's iterators make its indices fall into a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.affine import Affine
from compiler.ir.nodes import Var
from compiler.schedule.digits import Extents, digit_of
from compiler.schedule.region import Span, quotient, remainder


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
    terms = sorted(form.terms, key=lambda term: -term[1])
    iterators = [atom for atom, _ in terms if isinstance(atom, Var) and atom in sizes]
    unknown: dict[Var, Span | None] = dict.fromkeys(iterators)
    if len(iterators) < len(terms) or not terms:
        return unknown
    span = Span(span.low + Affine((), -form.const, span.low.dtype), span.extent)
    if len(terms) == 1 and terms[0][1] == -1 and width == 1:
        # c - v lies in a span just where v lies in its mirror image.
        return {iterators[0]: Span(span.low.scaled(-1) + Affine((), 1 - span.extent), span.extent)}
    place = terms[-1][1]
    if place < width:
        return unknown
    for var, (_, scale) in zip(reversed(iterators), reversed(terms), strict=True):
        if scale != place:
            return unknown
        place = scale * sizes[var]
    found: dict[Var, Span | None] = {}
    for number, (var, (_, scale)) in enumerate(zip(iterators, terms, strict=True)):
        part = quotient(span, scale, extents) if scale > 1 else span
        found[var] = part if number == 0 else remainder(part, sizes[var], extents)
    return found


def solve_digits(
    dimensions: Sequence[tuple[Affine, Span]], sizes: Extents
) -> dict[Var, Span] | None:
    """Return the spans of iterators whose digits lie in given spans: `v // 8` and `v % 8`.

    None if an index is no digit of an iterator, or if the values of an iterator are no span.
    """
    pieces: dict[Var, list[_Piece]] = {}
    for form, span in dimensions:
        digit = digit_of(Affine(form.terms, 0, form.dtype), sizes)
        if digit is None or digit.scale != 1 or not isinstance(digit.source, Var):
            return None
        moved = Span(span.low + Affine((), -form.const, span.low.dtype), span.extent)
        pieces.setdefault(digit.source, []).append(_Piece(digit.low, digit.extent, moved))
    found: dict[Var, Span] = {}
    for var, digits in pieces.items():
        span_of_var = _joined(sorted(digits, key=lambda piece: -piece.place), sizes[var])
        if span_of_var is None:
            return None
        found[var] = span_of_var
    return found


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
