"""Splits of iterators, against counting what the expressions take at each point."""

from __future__ import annotations

from itertools import product

import pytest

from compiler.ir.arith.iter_map import dense_width, may_overlap, peel, split_of
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var

X, Y = Var("x"), Var("y")


def over(value: Expr, divisor: int) -> Expr:
    return BinOp("//", value, IntImm(divisor))


def rest(value: Expr, divisor: int) -> Expr:
    return BinOp("%", value, IntImm(divisor))


def whole(factor: int) -> Expr:
    """Return `x * factor + y`."""
    return BinOp("+", BinOp("*", X, IntImm(factor)), Y)


def value(expr: Expr, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs):
            a, b = value(lhs, env), value(rhs, env)
            return {"+": a + b, "*": a * b, "//": a // (b or 1), "%": a % (b or 1)}[op]
        case _:
            raise NotImplementedError(expr)


@pytest.mark.parametrize(
    ("expr", "source", "low", "extent"),
    [
        (X, X, 1, None),
        (over(rest(over(X, 4), 6), 2), X, 8, 3),
        (over(rest(X, 32), 4), X, 4, 8),
        (rest(over(whole(32), 16), 6), whole(32), 16, 6),
        (rest(rest(X, 12), 4), X, 1, 4),
        (rest(rest(X, 4), 12), X, 1, 4),
        (over(rest(X, 6), 4), rest(X, 6), 4, None),
        (rest(rest(X, 6), 4), rest(X, 6), 1, 4),
    ],
)
def test_divisions_are_peeled_off_as_far_as_they_combine(
    expr: Expr, source: Expr, low: int, extent: int | None
) -> None:
    assert peel(expr) == (source, low, extent)
    for x, y in product(range(-40, 41), range(3)):
        env = {X: x, Y: y}
        part = value(source, env) // low
        assert value(expr, env) == (part if extent is None else part % extent)


@pytest.mark.parametrize(
    ("expr", "limit", "extent"),
    [
        (X, 9, 9),
        (over(X, 4), 9, 3),
        (rest(X, 4), 9, 4),
        (rest(X, 16), 9, 9),
        (over(whole(5), 3), 45, 15),
        (rest(over(whole(5), 3), 4), 45, 4),
        (rest(rest(X, 6), 4), 6, 4),
    ],
)
def test_a_split_knows_how_many_values_it_and_its_source_take(
    expr: Expr, limit: int, extent: int
) -> None:
    extents = {X: 9, Y: 5}
    split = split_of(expr, extents)
    assert split is not None
    assert (split.limit, split.extent) == (limit, extent)
    points = [{X: x, Y: y} for x, y in product(range(9), range(5))]
    assert {value(split.source, env) for env in points} == set(range(limit))
    assert {value(expr, env) for env in points} == set(range(extent))
    assert all(value(split.to_expr(), env) == value(expr, env) for env in points)


@pytest.mark.parametrize("expr", [Y, over(Y, 2), BinOp("min", X, IntImm(3)), over(whole(5), -2)])
def test_what_is_no_split_of_an_iterator_is_none(expr: Expr) -> None:
    assert split_of(expr, {X: 9}) is None


DIGITS = [[(1, 4), (4, 3), (12, 2)], [(4, 3), (1, 5)], [(5, 3), (1, 4)], [(-3, 4), (1, 3)], []]


@pytest.mark.parametrize("digits", DIGITS)
def test_sums_of_digits_overlap_or_are_dense_as_counting_says(
    digits: list[tuple[int, int]],
) -> None:
    choices = product(*(range(extent) for _, extent in digits))
    sums = [sum(s * d for (s, _), d in zip(digits, choice, strict=True)) for choice in choices]
    assert may_overlap(digits) == (len(set(sums)) < len(sums))
    is_dense = sorted(sums) == list(range(len(sums)))
    assert dense_width(digits) == (len(sums) if is_dense else None)
