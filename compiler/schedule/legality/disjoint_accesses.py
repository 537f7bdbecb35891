"""Prove that accesses under different values of some variables are disjoint.

All accesses are under the same loops. For accesses in different loops or threads, and for programs
without blocks, see `compiler.ir.analysis.dependence`.

Example, with `j` below 8 and `i` moving: `A[i * 8 + j]` and `A[i * 8 + 3]` are disjoint in
different iterations of `i`. This is not so of `A[i * 8 + j]` and `A[i * 8 + 9]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.iter_map import Extents, Guards, variables
from compiler.ir.core.nodes import Expr, Var

_NOTHING: Guards = {}


def separates_iterations(
    accesses: Sequence[tuple[Affine, ...]],
    moving: AbstractSet[Var],
    standing: AbstractSet[Var],
    extents: Extents,
    guards: Guards = _NOTHING,
) -> bool:
    """Return whether accesses under different values of some variables are disjoint.

    Every access has, in some of its dimensions, an index with one common part in the variables. The
    rest of the index is too fine or too coarse to overlap with it. Together the common parts
    determine the variables.

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
    """Return the common parts of all accesses in some variables, by which they can be separated."""
    parts = (
        _common_part(dimension, moving, standing, extents)
        for dimension in zip(*accesses, strict=True)
    )
    return [part for part in parts if part is not None]


def _common_part(
    forms: Sequence[Affine], moving: AbstractSet[Var], outer: AbstractSet[Var], extents: Extents
) -> Affine | None:
    """Return the common part of all forms in `moving`, if it determines their values; else None."""
    parts = [_select(form, lambda v: bool(v & moving)) for form in forms]
    fixed = [_select(form, lambda v: v <= outer) for form in forms]
    part = parts[0]
    interval = affine_bounds(part, extents)
    if not part.terms:
        return None
    if any((p - part).terms for p in parts) or any((f - fixed[0]).terms for f in fixed):
        return None

    remainders = [form - p - f for form, p, f in zip(forms, parts, fixed, strict=True)]
    greatest = max(abs(scale) for _, scale in part.terms)
    terms = [term for remainder in remainders for term in remainder.terms]
    coarse = [abs(c) for a, c in terms if abs(c) > greatest and not _is_zero(a, extents)]
    width = _width([_fine(remainder, greatest) for remainder in remainders], extents)
    if width is None or width >= math.gcd(*(scale for _, scale in part.terms)):
        return None
    if coarse and (interval is None or interval[1] - interval[0] + width >= math.gcd(*coarse)):
        return None
    return part


def _is_zero(atom: Expr, extents: Extents) -> bool:
    """Return whether an atom is the variable of a loop of one iteration."""
    return isinstance(atom, Var) and extents.get(atom) == 1


def _select(form: Affine, is_selected: Callable[[AbstractSet[Var]], bool]) -> Affine:
    selected = tuple((atom, scale) for atom, scale in form.terms if is_selected(variables(atom)))
    return Affine(selected, 0, form.dtype)


def _fine(form: Affine, greatest: int) -> Affine:
    return Affine(tuple((a, c) for a, c in form.terms if abs(c) <= greatest), form.const)


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
