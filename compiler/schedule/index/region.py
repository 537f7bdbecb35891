"""Boxes of indices: what a block accesses while some loops run and the others are fixed.

A box holds all accessed elements. `legality.guard.dense_box` proves that all of a box is accessed.

Example, while `j` below 8 runs and `i` is fixed:

    i * 8 + j            covers a span of 8 indices that begins at i * 8
    (i * 8 + j) // 4     covers a span of 2 indices that begins at i * 2
    (i * 8 + j + 4) % 8  covers all 8 indices: the span begins at 0
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bounds import Interval, affine_bounds
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.iter_map import Extents, variables
from compiler.ir.arith.simplify import canonical, normal
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var


@frozen
class Span:
    """The integers `low`, ..., `low + extent - 1`; `low` is in terms of the fixed loops."""

    low: Affine
    extent: int


Box: TypeAlias = tuple[Span | None, ...]
"""One span a dimension; None where nothing is known."""


def span_of(form: Affine, fixed: Iterable[Var], extents: Extents) -> Span | None:
    """Return a span that holds every value of `form` while only variables not `fixed` vary."""
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
    return Span(low + Affine((), least, form.dtype), min(most - least + 1, UNKNOWN))


def _atom_span(atom: Expr, standing: set[Var], extents: Extents) -> Span | None:
    """Return the span of an atom in which some variable varies."""
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
    """Return the span of the quotients of a span's integers, rounded down."""
    low = normal(BinOp("//", span.low.to_expr(), IntImm(divisor, span.low.dtype)), extents)
    return Span(low, _periods(span, divisor) + 1)


def remainder(span: Span, divisor: int, extents: Extents) -> Span | None:
    """Return the span of the remainders of a span's integers, if they lie in one period."""
    if _periods(span, divisor):
        return None
    low = normal(BinOp("%", span.low.to_expr(), IntImm(divisor, span.low.dtype)), extents)
    return Span(low, span.extent)


def _periods(span: Span, divisor: int) -> int:
    """Return the largest number of multiples of a divisor that the integers of a span may pass.

    The first integer is a multiple of some step, up to a constant. The step bounds its distance to
    the next multiple of the divisor.
    """
    step = math.gcd(divisor, *(scale for _, scale in span.low.terms))
    most = divisor - step + span.low.const % step
    return (most + span.extent - 1) // divisor


def _constant(interval: Interval) -> Span:
    return Span(Affine((), interval[0]), interval[1] - interval[0] + 1)


def separated(form: Affine, fixed: AbstractSet[Var], extents: Extents) -> Affine:
    """Return a form whose quotients and remainders do not mix fixed with varying variables.

    If r runs over 0, ..., g - 1, then (g * a + r) // (g * m) is a // m, and (g * a + r) % (g * m)
    is g * (a % m) + r.
    """
    total = Affine((), form.const, form.dtype)
    for atom, scale in form.terms:
        names = variables(atom)
        part = Affine(((atom, 1),), 0, form.dtype)
        if names & fixed and not names <= fixed:
            part = _separated(atom, fixed, extents) or part
        total += part.scaled(scale)
    return total


def _separated(atom: Expr, fixed: AbstractSet[Var], extents: Extents) -> Affine | None:
    match atom:
        case BinOp("//" | "%" as op, value, IntImm(divisor)) if divisor > 0:
            inner = affine(value)
        case _:
            return None
    coarse = tuple((a, c) for a, c in inner.terms if variables(a) <= fixed)
    step = math.gcd(divisor, *(c for _, c in coarse))
    moving = tuple(term for term in inner.terms if term not in coarse)
    fine = Affine(moving, inner.const % step, inner.dtype)
    interval = affine_bounds(fine, extents)
    if not coarse or interval is None or interval[0] < 0 or interval[1] >= step:
        return None
    whole = Affine(tuple((a, c // step) for a, c in coarse), inner.const // step, inner.dtype)
    rest = IntImm(divisor // step, inner.dtype)
    divided = canonical(BinOp(op, whole.to_expr(), rest), extents)
    return divided if op == "//" else divided.scaled(step) + fine


def hull(a: Span | None, b: Span | None) -> Span | None:
    """Return the smallest span that holds two spans; None if they are not comparable."""
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
    """Return whether a span surely holds another, among the indices 0, ..., `size` - 1."""
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
