"""Separate accesses between which there is always a barrier.

Threads of a block pass the same barriers, so two accesses race in one epoch only: after the same
number of barriers. The epochs of two accesses are sums over the loops around them.

Example, with `k`, `f` and `i` below 64, 2 and 4:

    66 + 528 * k + 8 * f     a copy into shared memory
    82 + 528 * k + 16 * i    its use: in no iterations of k, f and i are both numbers equal
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from compiler.ir.arith.affine import affine
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import Var
from compiler.ir.verify.races.shared_access import SharedAccess

# A term with more values that may give zero is not followed: the answer is then that it may.
_MAX_BRANCHES = 2


@frozen
class _Term:
    """`scale * number`, with a number from `low` to `high`; the scale is positive."""

    scale: int
    low: int
    high: int


def split_by_epoch(
    accesses: Sequence[SharedAccess], fixed: Collection[Var]
) -> list[list[SharedAccess]]:
    """Return the accesses in groups; those of different groups never lie in one epoch.

    Args:
        accesses: The accesses.
        fixed: The variables that have one value for all.
    """
    group_of = list(range(len(accesses)))
    for one, other in combinations(range(len(accesses)), 2):
        first, second = group_of[one], group_of[other]
        if first != second and _may_share_epoch(accesses[one], accesses[other], fixed):
            group_of = [first if group == second else group for group in group_of]
    groups: dict[int, list[SharedAccess]] = {}
    for group, access in zip(group_of, accesses, strict=True):
        groups.setdefault(group, []).append(access)
    return list(groups.values())


def _may_share_epoch(one: SharedAccess, other: SharedAccess, fixed: Collection[Var]) -> bool:
    """Return whether two accesses may lie in one epoch, each at any point of its loops."""
    forms = [affine(access.epoch) for access in (one, other)]
    extents = [{loop.var: loop.extent for loop in access.loops} for access in (one, other)]
    terms: list[_Term] = []
    for var in {atom for form in forms for atom, _ in form.terms}:
        scales = [form.coefficient(var) for form in forms]
        limits = [loops.get(var, 0) if isinstance(var, Var) else 0 for loops in extents]
        if any(scale < 0 or (scale and not n) for scale, n in zip(scales, limits, strict=True)):
            return True
        if scales[0] == scales[1]:
            if var not in fixed:
                terms.append(_Term(scales[0], 1 - limits[1], limits[0] - 1))
            continue
        terms.append(_Term(scales[0], 0, limits[0] - 1))
        terms.append(_Term(scales[1], 1 - limits[1], 0))
    terms = sorted((term for term in terms if term.scale), key=lambda term: -term.scale)
    return _may_be_zero(forms[0].const - forms[1].const, terms)


def _may_be_zero(const: int, terms: Sequence[_Term]) -> bool:
    """Return whether a sum may be zero; the terms have falling scales."""
    if not terms:
        return const == 0
    first, rest = terms[0], terms[1:]
    low = const + sum(term.scale * term.low for term in rest)
    high = const + sum(term.scale * term.high for term in rest)
    numbers = range(
        max(first.low, -(high // first.scale)), min(first.high, -low // first.scale) + 1
    )
    return len(numbers) > _MAX_BRANCHES or any(
        _may_be_zero(const + first.scale * number, rest) for number in numbers
    )
