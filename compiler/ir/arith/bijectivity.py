"""Which iterators some indices determine (injective), and which points they reach (surjective).

Both questions are about indices as sums of iterator splits (`iter_map`). Splits that never overlap
determine their sources; splits that leave no gap reach every value. Where the value itself is
wanted, and not only that there is one: `compiler.schedule.index.index_map_inverse`.

Examples, with `i` below 8 and `j` below 4:

    i * 4 + j    determines i and j, and reaches 0, ..., 31
    i * 2 + j    determines neither: the splits overlap, (0, 2) and (1, 0) are both 2
    i * 8 + j    determines both, but leaves gaps: 4 is not reached

Fused loops are the other direction: `f // 16` and `f % 16` together determine `f`, and with `f`
below 288 they reach each point of 18 x 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.iter_map import (
    NO_GUARDS,
    Extents,
    Guards,
    IterSplit,
    Source,
    may_overlap,
    splits_of,
    terms_of,
    variables,
)
from compiler.ir.core.nodes import BinOp, Expr, Var

SplitRange: TypeAlias = tuple[int, int, int]
"""The `low`, `extent` and `limit` of a split."""


def determined(
    forms: Iterable[Affine],
    extents: Extents,
    given: Iterable[Var] = (),
    guards: Guards = NO_GUARDS,
) -> frozenset[Var]:
    """Return the variables that the values of some forms determine.

    Args:
        given: Variables whose values are given.
        guards: Bounds that hold in all iterations considered.
    """
    fixed = set(given) | {var for var, extent in extents.items() if extent == 1}
    pending = list(forms)
    pending += _divided(pending)
    parts: dict[Source, set[tuple[int, int]]] = {}
    while True:
        before = (len(fixed), sum(map(len, parts.values())), len(pending))
        for form in pending:
            for split in _separated(_without(form, fixed), extents, guards):
                source = split.key
                parts.setdefault(source, set()).add((split.low, split.extent))
                if is_complete(parts[source], split.limit):
                    if isinstance(source, Var):
                        fixed.add(source)
                    elif not any(terms_of(f) == source for f in pending):
                        pending.append(Affine(tuple(source), 0))
        if before == (len(fixed), sum(map(len, parts.values())), len(pending)):
            return frozenset(fixed)


def _divided(forms: Iterable[Affine]) -> list[Affine]:
    """Return each `x` of which the forms have both `x // n` and `x % n`."""
    seen: dict[tuple[Expr, Expr], set[str]] = {}
    for form in forms:
        atom = form.terms[0][0] if len(form.terms) == 1 else None
        if isinstance(atom, BinOp) and atom.op in ("//", "%"):
            seen.setdefault((atom.lhs, atom.rhs), set()).add(atom.op)
    return [affine(lhs) for (lhs, _), ops in seen.items() if len(ops) == 2]


def _separated(form: Affine, extents: Extents, guards: Guards) -> list[IterSplit]:
    """Return the splits of a form if its value determines each of them, else none."""
    splits = splits_of(form, extents, guards)
    if splits is None or may_overlap((split.scale, split.extent) for split in splits):
        return []
    return splits


def is_complete(parts: Iterable[tuple[int, int]], limit: int) -> bool:
    """Check that some parts of a number below a limit determine it; they may overlap.

    Args:
        parts: The `low` and `extent` of each part `number // low % extent`.
    """
    width = 1
    for low, extent in sorted(parts):
        if width % low == 0:
            width = max(width, low * extent)
    return width >= limit


def _without(form: Affine, fixed: set[Var]) -> Affine:
    """Return a form without the terms that only use fixed variables."""
    free = tuple((atom, scale) for atom, scale in form.terms if not variables(atom) <= fixed)
    return form if len(free) == len(form.terms) else Affine(free, form.const, form.dtype)


def covering_sources(
    forms: Sequence[Affine],
    sizes: Sequence[int],
    extents: Extents,
    guards: Guards = NO_GUARDS,
) -> frozenset[Source] | None:
    """Return the sources of the forms' splits if the forms reach every point of a box together.

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
    if all(_are_independent(parts) for parts in taken.values()):
        return frozenset(taken)
    return None


def _reaches(
    form: Affine,
    size: int,
    extents: Extents,
    guards: Guards,
    taken: dict[Source, list[SplitRange]],
) -> bool:
    """Check that one form reaches 0, ..., `size` - 1, and add its splits to `taken`.

    A form that subtracts counts from its least value.
    """
    splits = splits_of(form, extents, guards)
    if splits is None or form.const > 0:
        return False
    span = 1
    # A split that is subtracted takes the same values, in the opposite order.
    for split in sorted(splits, key=lambda s: abs(s.scale)):
        # An unknown extent has no lower bound: the loop may not run at all.
        if abs(split.scale) > span or split.limit >= UNKNOWN:
            return False
        span += abs(split.scale) * (split.extent - 1)
        taken.setdefault(split.key, []).append((split.low, split.extent, split.limit))
    return form.const + span >= size


def _are_independent(parts: Sequence[SplitRange]) -> bool:
    """Check that parts of one source take every combination of their values."""
    width, greatest = 1, 0
    for low, extent, _ in sorted(parts):
        if low % width:
            return False
        width = low * extent
        greatest += low * (extent - 1)
    return greatest < parts[0][2]
