"""Boxes of indices: what a block touches while some loops run and the others stand still."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.affine import Affine, affine
from compiler.ir.bounds import Interval, affine_bounds
from compiler.ir.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.simplify import normal
from compiler.schedule.digits import Extents, variables


@dataclass(frozen=True, slots=True)
class Span:
    """The integers `low`, ..., `low + extent - 1`; `low` is in terms of the loops that stand."""

    low: Affine
    extent: int


Box: TypeAlias = tuple[Span | None, ...]
"""One span a dimension; None where nothing is known."""


def span_of(form: Affine, fixed: Iterable[Var], extents: Extents) -> Span | None:
    """Return a span that holds every value of `form` while only variables not `fixed` move."""
    standing = set(fixed)
    low = Affine((), form.const, form.dtype)
    least = most = 0
    for atom, scale in form.terms:
        if variables(atom) <= standing:
            low += Affine(((atom, scale),), 0, form.dtype)
            continue
        part = _atom_span(atom, standing, extents)
        if part is None:
            return None
        width = scale * (part.extent - 1)
        low += part.low.scaled(scale)
        least, most = least + min(width, 0), most + max(width, 0)
    return Span(low + Affine((), least, form.dtype), most - least + 1)


def _atom_span(atom: Expr, standing: set[Var], extents: Extents) -> Span | None:
    """Return the span of an atom in which some variable moves."""
    if isinstance(atom, BinOp) and atom.op in ("//", "%") and isinstance(atom.rhs, IntImm):
        divisor = atom.rhs.value
        inner = span_of(affine(atom.lhs), standing, extents)
        if divisor > 0 and inner is not None and inner.low.terms:
            span = (quotient if atom.op == "//" else remainder)(inner, divisor, extents)
            if span is not None:
                return span
    interval = affine_bounds(affine(atom), extents)
    return None if interval is None else _constant(interval)


def quotient(span: Span, divisor: int, extents: Extents) -> Span:
    """Return the span of the integers of a span, divided and rounded down."""
    low = normal(BinOp("//", span.low.to_expr(), IntImm(divisor, span.low.dtype)), extents)
    return Span(low, _periods(span, divisor) + 1)


def remainder(span: Span, divisor: int, extents: Extents) -> Span | None:
    """Return the span of what is left of the integers of a span, if they are of one period."""
    if _periods(span, divisor):
        return None
    low = normal(BinOp("%", span.low.to_expr(), IntImm(divisor, span.low.dtype)), extents)
    return Span(low, span.extent)


def _periods(span: Span, divisor: int) -> int:
    """Return how often, at most, the integers of a span pass a multiple of a divisor.

    The first of them is a multiple of some step, up to a constant: that is how close to the next
    multiple of the divisor it can be.
    """
    step = math.gcd(divisor, *(scale for _, scale in span.low.terms))
    most = divisor - step + span.low.const % step
    return (most + span.extent - 1) // divisor


def _constant(interval: Interval) -> Span:
    return Span(Affine((), interval[0]), interval[1] - interval[0] + 1)


def hull(a: Span | None, b: Span | None) -> Span | None:
    """Return the smallest span that holds two, or None if they are not comparable."""
    if a is None or b is None:
        return None
    distance = b.low - a.low
    if distance.terms:
        return None
    low = a.low if distance.const >= 0 else b.low
    start = min(0, distance.const)
    end = max(a.extent, distance.const + b.extent)
    return Span(low, end - start)


def contains(outer: Span | None, inner: Span | None, size: int, extents: Extents) -> bool:
    """Tell whether a span surely holds another, of the indices 0, ..., `size` - 1."""
    if outer is None:
        return False
    first = affine_bounds(outer.low, extents)
    last = affine_bounds(outer.low + Affine((), outer.extent), extents)
    starts_low = first is not None and first[1] <= 0
    ends_high = last is not None and last[0] >= size
    if inner is None:
        return starts_low and ends_high
    before = affine_bounds(inner.low - outer.low, extents)
    starts_low = starts_low or (before is not None and before[0] >= 0)
    slack = outer.extent - inner.extent
    ends_high = ends_high or (before is not None and before[1] <= slack)
    return starts_low and ends_high
