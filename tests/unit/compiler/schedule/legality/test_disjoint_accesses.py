"""Accesses that are disjoint under different values of a variable, checked at all points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.values import form_value
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.schedule.legality.disjoint_accesses import separates_iterations

F, J, K = Var("f"), Var("j"), Var("k")
EXTENTS = {F: 12, J: 4, K: 3}


def _part(var: Var, low: int, extent: int) -> Expr:
    return BinOp("%", BinOp("//", var, IntImm(low)), IntImm(extent))


OF_3, OF_4 = _part(F, 1, 3), _part(F, 3, 4)


def _sum(*terms: tuple[Expr, int], const: int = 0) -> Affine:
    form = Affine((), const)
    for atom, scale in terms:
        form += affine(atom).scaled(scale)
    return form


def _meet(accesses: list[tuple[Affine, ...]]) -> bool:
    """Return whether two values of `F` reach one element, by trying all points."""
    reached: dict[tuple[int, ...], int] = {}
    for access in accesses:
        for point in itertools.product(*map(range, EXTENTS.values())):
            env = {v: np.array(x) for v, x in zip(EXTENTS, point, strict=True)}
            element = tuple(int(form_value(form, env)) for form in access)
            if reached.setdefault(element, point[0]) != point[0]:
                return True
    return False


@pytest.mark.parametrize(
    ("accesses", "is_separated"),
    [
        ([(_sum((F, 8), (J, 1)),), (_sum((F, 8), const=3),)], True),
        ([(_sum((F, 8), (J, 1)),), (_sum((F, 8), const=9),)], False),
        # The digits of the fused loop are around those of another loop, as in grouped channels.
        ([(_sum((OF_3, 1), (J, 3), (OF_4, 12)),)], True),
        ([(_sum((OF_3, 1), (J, 2), (OF_4, 12)),)], False),
        # A constant below the scale of the lowest digit separates nothing and breaks nothing.
        ([(_sum((OF_3, 2), (J, 6), (OF_4, 24), const=c),) for c in (0, 1)], True),
        ([(_sum((OF_3, 1), (J, 3), (OF_4, 12), const=c),) for c in (0, 1)], False),
        # One digit is in another dimension, and one access has no digit of `j`.
        ([(_sum((OF_4, 4), (J, 1)), _sum((OF_3, 1)))], True),
        ([(_sum((F, 4), (J, 1)),), (_sum((F, 4)),)], True),
        ([(_sum((F, 4), (J, 1)),), (_sum((J, 1)),)], False),
    ],
)
def test_digits_of_an_index_separate_iterations(
    accesses: list[tuple[Affine, ...]], is_separated: bool
) -> None:
    assert separates_iterations(accesses, {F}, set(), EXTENTS) == is_separated
    assert _meet(accesses) != is_separated


@st.composite
def _almost_digits(draw: st.DrawFn) -> Affine:
    """Draw a sum of parts in any order, some of which reach one into the next."""
    parts = draw(st.permutations([(OF_3, 3), (OF_4, 4), (_part(F, 2, 6), 6), (J, 4), (K, 3)]))
    form, scale = Affine((), draw(st.integers(0, 2))), 1
    for atom, extent in parts[: draw(st.integers(1, len(parts)))]:
        form += affine(atom).scaled(draw(st.sampled_from([scale, scale, -scale])))
        scale = max(scale * extent - draw(st.sampled_from([0, 0, 0, 1])), 1)
    return form


@settings(max_examples=400)
@given(
    st.lists(_almost_digits(), min_size=1, max_size=2),
    st.lists(st.tuples(st.sampled_from([(J, 1), (K, 1)]), st.integers(0, 2)), max_size=1),
)
def test_what_is_separated_never_meets(
    first: list[Affine], more: list[tuple[tuple[Expr, int], int]]
) -> None:
    second = [tuple(form + _sum(term, const=c) for form in first) for term, c in more]
    accesses = [tuple(first), *second]
    assert not (separates_iterations(accesses, {F}, set(), EXTENTS) and _meet(accesses))
