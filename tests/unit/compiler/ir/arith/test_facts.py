from __future__ import annotations

import pytest

from compiler.ir.arith.facts import Facts
from compiler.ir.core.nodes import BinOp, Compare, Expr, IntImm, Var

X, Y, Z = Var("x"), Var("y"), Var("z")


def number(value: int) -> Expr:
    return IntImm(value)


def times(var: Var, factor: int) -> Expr:
    return BinOp("*", var, number(factor))


@pytest.mark.parametrize(("high", "holds"), [(2, True), (1, False)])
def test_a_condition_on_a_sum_bounds_its_quotient(high: int, holds: bool) -> None:
    total = BinOp("+", times(X, 2), Y)
    facts = Facts({}).having(X, 8).having(Y, 2).assuming(Compare("<", total, number(15)))
    assert facts.within(BinOp("//", total, number(5)), 0, high) is holds


@pytest.mark.parametrize(("high", "holds"), [(3, True), (2, False)])
def test_a_condition_bounds_a_sum_with_a_quotient_of_one_of_its_terms(
    high: int, holds: bool
) -> None:
    facts = Facts({}).having(X, 3).having(Y, 24)
    facts = facts.assuming(Compare("<", BinOp("+", times(X, 24), Y), number(24)))
    value = BinOp("+", times(X, 4), BinOp("//", Y, number(6)))
    assert facts.within(value, 0, high) is holds


def test_a_quotient_that_is_subtracted_is_bounded_from_the_other_side() -> None:
    total = BinOp("+", times(X, 4), Y)
    facts = Facts({}).having(X, 8).having(Y, 6).assuming(Compare(">=", total, number(10)))
    value = BinOp("-", number(10), BinOp("//", total, number(5)))
    assert facts.within(value, 0, 8)
    assert not facts.within(value, 0, 7)


@pytest.mark.parametrize(("low", "holds"), [(2, True), (3, False)])
def test_a_condition_on_a_multiple_is_rounded_to_integers(low: int, holds: bool) -> None:
    total = BinOp("+", times(X, 4), Y)
    facts = Facts({}).having(X, 8).having(Y, 4).assuming(Compare(">=", total, number(9)))
    assert facts.within(X, low, 7) is holds


def test_ways_to_divide_that_are_equal_are_one() -> None:
    def part(size: int, period: int) -> Expr:
        return BinOp("//", BinOp("%", X, number(period)), number(size))

    def same(size: int, count: int) -> Expr:
        return BinOp("%", BinOp("//", X, number(size)), number(count))

    rows = BinOp("*", BinOp("//", X, number(18)), number(3))
    condition = Compare("<", BinOp("+", rows, same(6, 3)), number(4))
    facts = Facts({}).having(X, 36).assuming(condition)
    assert facts.within(BinOp("+", rows, part(6, 18)), 0, 3)
    assert facts.within(X, 0, 23)
    assert not facts.within(X, 0, 22)


def test_the_digits_of_a_remainder_make_the_remainder() -> None:
    remainder = BinOp("%", X, number(9))
    middle = BinOp("//", remainder, number(3))
    digits = BinOp("+", BinOp("*", middle, number(3)), BinOp("%", X, number(3)))
    facts = Facts({}).having(X, 36).assuming(Compare("<", digits, number(8)))
    assert facts.within(remainder, 0, 7)
    assert not facts.within(remainder, 0, 6)


@pytest.mark.parametrize(("high", "holds"), [(57, True), (56, False)])
def test_a_condition_on_two_quotients_bounds_their_sum(high: int, holds: bool) -> None:
    """The row of a halo: tiles of 16 rows, of which the last one is not whole."""
    tile = BinOp("//", BinOp("%", X, number(8)), number(2))
    row = BinOp("%", BinOp("//", Y, number(34)), number(18))
    value = BinOp("+", BinOp("*", tile, number(16)), row)
    facts = Facts({}).having(X, 64).having(Y, 4896).assuming(Compare("<", value, number(58)))
    assert facts.within(value, 0, high) is holds


@pytest.mark.parametrize(("high", "holds"), [(4095, True), (4094, False)])
def test_a_condition_on_a_dividend_bounds_its_quotient(high: int, holds: bool) -> None:
    """The rows of 1024 tiles of 128 rows and columns, 32 in a row, for 132 blocks."""
    tile = BinOp("+", BinOp("*", X, number(132)), Y)
    rows = BinOp("*", BinOp("//", tile, number(32)), number(128))
    facts = Facts({}).having(X, 8).having(Y, 132).having(Z, 128)
    facts = facts.assuming(Compare("<", tile, number(1024)))
    assert facts.within(BinOp("+", rows, Z), 0, high) is holds


def test_a_point_that_excludes_every_value_of_a_variable_is_never_reached() -> None:
    facts = Facts({}).having(X, 8)
    assert not facts.is_contradiction
    never = facts.assuming(Compare(">=", X, number(8))).having(Y, 4)
    assert never.is_contradiction
    assert never.within(Y, 7, 7)
