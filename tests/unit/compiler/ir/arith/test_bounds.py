"""Intervals of expressions, by ranges of their variables and by conditions."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import FixedRanges, bounds, conditional_bounds
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var

_I, _J = Var("i"), Var("j")
_SUM = BinOp("+", BinOp("*", _I, IntImm(8)), _J)
_SPLITS: tuple[Expr, ...] = (
    BinOp("//", _SUM, IntImm(8)),
    BinOp("%", _SUM, IntImm(8)),
    BinOp("%", BinOp("//", _SUM, IntImm(8)), IntImm(2)),
    BinOp("min", _SUM, IntImm(31)),
)


def test_kept_forms_and_intervals_are_those_of_a_first_request() -> None:
    ranges = FixedRanges({_I: 4, _J: (0, 7)})
    for _ in range(2):
        for expr in _SPLITS:
            assert simplify(expr, ranges) == simplify(expr, {_I: 4, _J: (0, 7)})
            assert bounds(expr, ranges) == bounds(expr, {_I: 4, _J: (0, 7)})


def test_another_range_of_a_variable_invalidates_what_was_kept() -> None:
    ranges = FixedRanges({_I: 4, _J: 8})
    quotient = _SPLITS[0]
    assert simplify(quotient, ranges) == _I
    assert bounds(quotient, ranges) == (0, 3)
    ranges[_J] = (0, 15)
    assert simplify(quotient, ranges) == simplify(quotient, {_I: 4, _J: 16}) != _I
    assert bounds(quotient, ranges) == (0, 4)


def test_a_minimum_is_at_most_half_of_a_constant_sum() -> None:
    phase = BinOp("%", _I, IntImm(9))
    reflected = BinOp("-", IntImm(9), phase)
    assert bounds(BinOp("min", phase, reflected), {_I: 100}) == (0, 4)
    assert bounds(BinOp("max", phase, reflected), {_I: 100}) == (5, 9)


def form(i: int, j: int, const: int = 0) -> Affine:
    return Affine(tuple((v, c) for v, c in ((_I, i), (_J, j)) if c), const)


def test_a_condition_on_a_sum_bounds_its_multiples() -> None:
    ranges = {_I: 2, _J: 2}
    assert conditional_bounds(form(4, 2), ranges, [form(-2, -1, 2)]) == (0, 4)
    assert conditional_bounds(form(4, 2), ranges, [form(2, 1, -1)]) == (2, 6)
    assert conditional_bounds(form(4, 2, 5), ranges, []) == (5, 11)


def test_two_conditions_bound_a_sum_of_both() -> None:
    ranges = {_I: 8, _J: 8}
    assert conditional_bounds(form(2, 3), ranges, [form(-1, 0, 4), form(0, -1, 5)]) == (0, 23)


_coefficients = st.integers(-4, 4)
_forms = st.builds(form, _coefficients, _coefficients, st.integers(-8, 8))


@given(_forms, st.lists(_forms, max_size=3))
def test_no_value_under_conditions_is_outside_of_the_bounds(
    subject: Affine, conditions: list[Affine]
) -> None:
    def value(of: Affine, i: int, j: int) -> int:
        return of.coefficient(_I) * i + of.coefficient(_J) * j + of.const

    interval = conditional_bounds(subject, {_I: 4, _J: (-2, 5)}, conditions)
    assert interval is not None
    for i, j in product(range(4), range(-2, 6)):
        if all(value(c, i, j) >= 0 for c in conditions):
            assert interval[0] <= value(subject, i, j) <= interval[1]
