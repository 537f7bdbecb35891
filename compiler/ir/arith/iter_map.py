"""Digits of indices: which loop variables an index determines, and which values it reaches.

Splitting and fusing loops makes indices that are sums of digits: `i_0 * 4 + i_1`, `f // 16`,
`f % 16`, `(f_0 * 32 + f_1) // 16`. A digit is `source // low % extent` times a scale, where the
source is a variable or itself a sum of digits. Sorted by scale, digits that never overlap
determine their sources; digits that leave no gap reach every value. (TVM's iterator maps solve the
same problems.)

Examples, with `i` below 8 and `j` below 4:

    i * 4 + j    determines i and j, and reaches 0, ..., 31
    i * 2 + j    determines neither: the digits overlap, (0, 2) and (1, 0) are both 2
    i * 8 + j    determines both, but leaves gaps: 4 is not reached

Fused loops are the other direction: `f // 16` and `f % 16` together determine `f`, and with `f`
below 288 they reach each point of 18 x 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.simplify import normal, recombine
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import walk

Terms: TypeAlias = frozenset[tuple[Expr, int]]
Extents: TypeAlias = Mapping[Var, int]
"""The extents of variables that start at zero: `UNKNOWN` or more if they have no bound."""


Guards: TypeAlias = Mapping[Terms, int]
"""Known upper bounds: a sum of terms (without its constant) is less than the number."""

Source: TypeAlias = Var | Terms

SplitRange: TypeAlias = tuple[int, int, int]
"""The `low`, `extent` and `limit` of a digit, without its scale."""

_NO_GUARDS: Guards = {}


@frozen
class IterSplit:
    """`scale * (source // low % extent)`, where the source runs over 0, ..., `limit` - 1."""

    source: Source
    limit: int
    low: int
    extent: int
    scale: int


def canonical(expr: Expr, extents: Extents) -> Affine:
    """Return the linear normal form of an index, in which a digit is `x // low % extent`.

    It is never `x % (low * extent) // low`, so that equal indices have equal forms.
    """
    form = normal(expr, extents)
    total = Affine((), form.const, form.dtype)
    for atom, scale in form.terms:
        match atom:
            case BinOp("//", BinOp("%", value, IntImm(period)), IntImm(low)) if (
                low > 0 and period % low == 0
            ):
                count = IntImm(period // low, form.dtype)
                digit = BinOp("%", BinOp("//", value, IntImm(low, form.dtype)), count)
                total += normal(digit, extents).scaled(scale)
            case _:
                total += Affine(((atom, scale),), 0, form.dtype)
    return recombine(total)


def as_written(form: Affine) -> Affine:
    """Return a form in which digits are written as `x % (low * extent) // low`."""
    terms: list[tuple[Expr, int]] = []
    for atom, scale in form.terms:
        match atom:
            case BinOp("%", BinOp("//", value, IntImm(low)), IntImm(extent)) if low > 0:
                period = IntImm(low * extent, form.dtype)
                digit = BinOp("//", BinOp("%", value, period), IntImm(low, form.dtype))
                terms.append((digit, scale))
            case _:
                terms.append((atom, scale))
    return Affine(tuple(terms), form.const, form.dtype)


def determined(
    forms: Iterable[Affine],
    extents: Extents,
    given: Iterable[Var] = (),
    guards: Guards = _NO_GUARDS,
) -> frozenset[Var]:
    """Return the variables that the values of some forms determine.

    Args:
        known: Variables whose values are given.
        guards: Bounds that hold in all iterations considered.
    """
    fixed = set(given) | {var for var, extent in extents.items() if extent == 1}
    pending = list(forms)
    pending += _divided(pending)
    digits: dict[Source, set[tuple[int, int]]] = {}
    while True:
        before = (len(fixed), sum(map(len, digits.values())), len(pending))
        for form in pending:
            for digit in _separated(_without(form, fixed), extents, guards):
                digits.setdefault(digit.source, set()).add((digit.low, digit.extent))
                if _is_complete(digits[digit.source], digit.limit):
                    if isinstance(digit.source, Var):
                        fixed.add(digit.source)
                    elif not any(terms_of(f) == digit.source for f in pending):
                        pending.append(Affine(tuple(digit.source), 0))
        if before == (len(fixed), sum(map(len, digits.values())), len(pending)):
            return frozenset(fixed)


def _divided(forms: Iterable[Affine]) -> list[Affine]:
    """Return each `x` of which the forms have both `x // n` and `x % n`."""
    seen: dict[tuple[Expr, Expr], set[str]] = {}
    for form in forms:
        atom = form.terms[0][0] if len(form.terms) == 1 else None
        if isinstance(atom, BinOp) and atom.op in ("//", "%"):
            seen.setdefault((atom.lhs, atom.rhs), set()).add(atom.op)
    return [affine(lhs) for (lhs, _), ops in seen.items() if len(ops) == 2]


def reach(
    forms: Sequence[Affine],
    sizes: Sequence[int],
    extents: Extents,
    guards: Guards = _NO_GUARDS,
) -> frozenset[Source] | None:
    """Return the sources of the forms' digits if the forms reach every point of a box together.

    Guards limit the sources. Guards on the forms themselves must not cut into the box.

    Args:
        sizes: The extents of the box, which starts at zero.

    Returns:
        The sources, or None if some point may not be reached.
    """
    taken: dict[Source, list[SplitRange]] = {}
    for form, size in zip(forms, sizes, strict=True):
        if not _reaches(form, size, extents, guards, taken):
            return None
    done: set[Source] = set()
    while pending := [s for s in taken if s not in done and not isinstance(s, Var)]:
        for source in pending:
            done.add(source)
            form = Affine(tuple(source), 0)
            if not _reaches(form, taken[source][0][2], extents, guards, taken):
                return None
    if all(_are_independent(digits) for digits in taken.values()):
        return frozenset(taken)
    return None


def _reaches(
    form: Affine,
    size: int,
    extents: Extents,
    guards: Guards,
    taken: dict[Source, list[SplitRange]],
) -> bool:
    """Check that one form reaches 0, ..., `size` - 1, and add its digits to `taken`.

    A form that subtracts counts from its least value.
    """
    digits = _digits(form, extents, guards)
    if digits is None or form.const > 0:
        return False
    span = 1
    # A digit that is subtracted takes the same values, in the opposite order.
    for digit in sorted(digits, key=lambda d: abs(d.scale)):
        # An unknown extent has no lower bound: the loop may not run at all.
        if abs(digit.scale) > span or digit.limit >= UNKNOWN:
            return False
        span += abs(digit.scale) * (digit.extent - 1)
        taken.setdefault(digit.source, []).append((digit.low, digit.extent, digit.limit))
    return form.const + span >= size


def _are_independent(digits: Sequence[SplitRange]) -> bool:
    """Check that digits of one source take every combination of their values."""
    width, greatest = 1, 0
    for low, extent, _ in sorted(digits):
        if low % width:
            return False
        width = low * extent
        greatest += low * (extent - 1)
    return greatest < digits[0][2]


def _separated(form: Affine, extents: Extents, guards: Guards) -> list[IterSplit]:
    """Return the digits of a form if its value determines each of them, else none."""
    digits = _digits(form, extents, guards)
    if digits is None:
        return []
    span = 1
    for digit in sorted(digits, key=lambda d: abs(d.scale)):
        if abs(digit.scale) < span:
            return []
        span += abs(digit.scale) * (digit.extent - 1)
    return digits


def _is_complete(digits: set[tuple[int, int]], limit: int) -> bool:
    width = 1
    for low, extent in sorted(digits):
        if width % low:
            return False
        width = max(width, low * extent)
    return width >= limit


def _digits(form: Affine, extents: Extents, guards: Guards) -> list[IterSplit] | None:
    digits: list[IterSplit] = []
    for atom, scale in form.terms:
        digit = _digit(atom, scale, extents, guards)
        if digit is None:
            return None
        if digit.extent > 1:
            digits.append(digit)
    return digits


def digit_of(form: Affine, extents: Extents) -> IterSplit | None:
    """Return the digit if a form is a single digit, else None."""
    if len(form.terms) != 1 or form.const:
        return None
    return _digit(*form.terms[0], extents, _NO_GUARDS)


def count_of(atom: Expr, extents: Extents) -> int | None:
    """Return how many values an atom takes, starting at zero, if it is a digit."""
    digit = _digit(atom, 1, extents, _NO_GUARDS)
    return None if digit is None else digit.extent


def _digit(atom: Expr, scale: int, extents: Extents, guards: Guards) -> IterSplit | None:
    low, extent = 1, None
    inner = atom
    while isinstance(inner, BinOp) and isinstance(inner.rhs, IntImm) and inner.rhs.value > 0:
        number = inner.rhs.value
        if inner.op == "//":
            low *= number
        elif inner.op != "%":
            break
        elif number % low == 0 and _fits(extent, number // low):
            # x % a // low is x // low % (a // low) if low divides a.
            extent = min(number // low, extent or number)
        else:
            return None
        inner = inner.lhs
    source_and_limit = _source(inner, extents, guards)
    if source_and_limit is None:
        return None
    source, limit = source_and_limit
    most = -(-limit // low)
    return IterSplit(source, limit, low, most if extent is None else min(extent, most), scale)


def _fits(extent: int | None, period: int) -> bool:
    """Check that `x % period % extent` is the remainder by the lesser of both numbers."""
    return extent is None or extent >= period or period % extent == 0


def _source(expr: Expr, extents: Extents, guards: Guards) -> tuple[Source, int] | None:
    """Return the source of a digit, and how many values it has."""
    if isinstance(expr, Var):
        limit = extents.get(expr)
        return None if limit is None else (expr, limit)
    form = affine(expr)
    if form.const or not form.terms:
        return None
    if len(form.terms) == 1 and not isinstance(form.terms[0][0], Var):
        return None
    digits = _digits(form, extents, guards)
    if digits is None or any(digit.scale < 0 for digit in digits):
        return None
    terms = terms_of(form)
    limit = 1 + sum(digit.scale * (digit.extent - 1) for digit in digits)
    return terms, min(limit, guards.get(terms, limit))


def terms_of(form: Affine) -> Terms:
    """Return the terms of a form, without their order."""
    return frozenset(form.terms)


def _without(form: Affine, fixed: set[Var]) -> Affine:
    """Return a form without the terms that only use fixed variables."""
    free = tuple((atom, scale) for atom, scale in form.terms if not variables(atom) <= fixed)
    return form if len(free) == len(form.terms) else Affine(free, form.const, form.dtype)


def variables(expr: Expr) -> set[Var]:
    """Return the variables of an expression."""
    if isinstance(expr, Var):
        return {expr}
    if isinstance(expr, IntImm):
        return set()
    if isinstance(expr, BinOp):
        return variables(expr.lhs) | variables(expr.rhs)
    return {node for node in walk(expr) if isinstance(node, Var)}


def variables_of(form: Affine) -> set[Var]:
    """Return the variables of a form."""
    return {var for atom, _ in form.terms for var in variables(atom)}
