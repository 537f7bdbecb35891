"""Quotients and remainders of sums whose last part fills no whole step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import substitute

N, J, E = Var("n"), Var("j"), Var("e")
RANGES = {N: 6, J: 4, E: 8}


def plus(*parts: Expr) -> Expr:
    first, *others = parts
    for part in others:
        first = BinOp("+", first, part)
    return first


def times(var: Expr, factor: int) -> Expr:
    return BinOp("*", var, IntImm(factor))


RUNS = plus(times(N, 32), times(J, 8), E)


@pytest.mark.parametrize(
    ("op", "divisor", "expected"),
    [
        ("//", 56, BinOp("//", plus(times(N, 4), J), IntImm(7))),
        ("%", 56, plus(times(BinOp("%", plus(times(N, 4), J), IntImm(7)), 8), E)),
        ("//", 8, plus(times(N, 4), J)),
        ("%", 8, E),
        ("//", 32, N),
        ("//", 28, BinOp("//", RUNS, IntImm(28))),  # parts of 4 have no room for 8 elements
    ],
)
def test_a_part_of_a_divisor_is_divided_off(op: str, divisor: int, expected: Expr) -> None:
    assert simplify(BinOp(op, RUNS, IntImm(divisor)), RANGES) == simplify(expected, RANGES)  # type: ignore[arg-type]


@given(
    st.sampled_from(["//", "%"]),
    st.tuples(st.integers(-24, 24), st.integers(-12, 12), st.integers(-3, 3), st.integers(-60, 60)),
    st.integers(1, 96),
)
def test_all_points_keep_their_value(
    op: str, factors: tuple[int, int, int, int], divisor: int
) -> None:
    total = plus(times(N, factors[0]), times(J, factors[1]), times(E, factors[2]))
    expr = BinOp(op, plus(total, IntImm(factors[3])), IntImm(divisor))  # type: ignore[arg-type]
    simple = simplify(expr, RANGES)
    for i, j, e in [(0, 0, 0), (5, 3, 7), (1, 2, 3), (4, 0, 6), (2, 3, 1), (3, 1, 5), (5, 0, 0)]:
        values = {N: IntImm(i), J: IntImm(j), E: IntImm(e)}
        total_value = factors[0] * i + factors[1] * j + factors[2] * e + factors[3]
        expected = total_value // divisor if op == "//" else total_value % divisor
        assert simplify(substitute(simple, values)) == IntImm(expected)
