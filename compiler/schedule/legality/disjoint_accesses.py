"""Prove that accesses under different values of some variables are disjoint.

All accesses are under the same loops. For accesses in different loops or threads, and for programs
without blocks, see `compiler.ir.analysis.dependence`.

Example, with `j` below 8 and `i` moving: `A[i * 8 + j]` and `A[i * 8 + 3]` are disjoint in
different iterations of `i`. This is not so of `A[i * 8 + j]` and `A[i * 8 + 9]`. With `k` below 4,
`A[f // 3 * 32 + k * 8 + f % 3]` differs at each `f`, whose digits are around that of `k`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.iter_map import Extents, Guards, variables
from compiler.ir.core.nodes import Var

_NOTHING: Guards = {}


def separates_iterations(
    accesses: Sequence[tuple[Affine, ...]],
    moving: AbstractSet[Var],
    standing: AbstractSet[Var],
    extents: Extents,
    guards: Guards = _NOTHING,
) -> bool:
    """Return whether accesses under different values of some variables are disjoint.

    An index is a sum of digits: parts so far apart that equal indices have equal digits. Digits in
    the variables alone, which are common to all accesses, determine the variables together.

    Args:
        accesses: The indices of each access to one buffer.
        moving: The variables.
        standing: Variables that are the same for all accesses; all others vary freely.
        extents: The number of values of each variable.
        guards: The conditions of each access.
    """
    parts = common_parts(accesses, moving, standing, extents)
    return moving <= determined(parts, extents, standing, guards)


def common_parts(
    accesses: Sequence[tuple[Affine, ...]],
    moving: AbstractSet[Var],
    standing: AbstractSet[Var],
    extents: Extents,
) -> list[Affine]:
    """Return the common digits of all accesses in some variables, by which they are separated."""
    return [
        digit[0]
        for dimension in zip(*accesses, strict=True)
        for digit in _digits(_without_fixed(dimension, moving, standing, extents), extents)
        if digit[0].terms and _is_common(digit, moving)
    ]


def _without_fixed(
    forms: Sequence[Affine], moving: AbstractSet[Var], standing: AbstractSet[Var], extents: Extents
) -> list[Affine]:
    """Return forms without what is the same in all, or zero; none if they differ in the former."""
    fixed = [_select(form, lambda v: v <= standing) for form in forms]
    if any((f - fixed[0]).terms for f in fixed):
        return []
    zeros = {var for var, extent in extents.items() if extent == 1} - moving
    forms = [form - f for form, f in zip(forms, fixed, strict=True)]
    return [form - _select(form, lambda v: v <= zeros) for form in forms]


def _digits(forms: Sequence[Affine], extents: Extents) -> Iterator[list[Affine]]:
    """Yield the digits of indices of one dimension, the coarsest first, each with all its forms.

    The multiples of a number are a digit if the rest of each form lies within less than the number:
    two forms that are equal then have equal multiples, and equal rests.
    """
    if not forms:
        return
    for scale in sorted({abs(c) for form in forms for _, c in form.terms}, reverse=True):
        digit = [_at_least(form, scale) for form in forms]
        rests = [form - d for form, d in zip(forms, digit, strict=True)]
        width = _width(rests, extents)
        if width is not None and width < math.gcd(*(c for d in digit for _, c in d.terms)):
            yield digit
            forms = rests
    yield list(forms)


def _at_least(form: Affine, scale: int) -> Affine:
    """Return the terms of a form whose scale is at least the given one."""
    return Affine(tuple((atom, c) for atom, c in form.terms if abs(c) >= scale), 0, form.dtype)


def _is_common(digit: Sequence[Affine], moving: AbstractSet[Var]) -> bool:
    """Return whether a digit has one form, all of whose terms have some of the variables."""
    differences = [form - digit[0] for form in digit]
    return all(variables(atom) & moving for atom, _ in digit[0].terms) and not any(
        difference.terms or difference.const for difference in differences
    )


def _select(form: Affine, is_selected: Callable[[AbstractSet[Var]], bool]) -> Affine:
    selected = tuple((atom, scale) for atom, scale in form.terms if is_selected(variables(atom)))
    return Affine(selected, 0, form.dtype)


def _width(forms: Sequence[Affine], extents: Extents) -> int | None:
    """Return the largest distance between two values of the forms."""
    lows, highs = [], []
    for form in forms:
        interval = affine_bounds(form, extents)
        if interval is None:
            return None
        lows.append(interval[0])
        highs.append(interval[1])
    return max(highs) - min(lows)
