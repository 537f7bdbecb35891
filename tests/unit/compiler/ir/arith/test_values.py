"""Values of expressions at many points are those of Python at each of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.affine import affine
from compiler.ir.arith.values import UnknownError, form_value, grid, value_at
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Compare,
    CompareOp,
    Expr,
    IntImm,
    Load,
    Select,
    Var,
    make_buffer,
)

I, J = Var("i"), Var("j")  # noqa: E741 - the names of loops
AXES = {I: np.arange(7), J: np.arange(-3, 5)}
ARITHMETIC: dict[ArithOp, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    ">>": operator.rshift,
}
COMPARE: dict[CompareOp, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value(expr: Expr, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(number):
            return number
        case BinOp(op, lhs, rhs):
            return ARITHMETIC[op](value(lhs, env), value(rhs, env))
        case Compare(op, lhs, rhs):
            return COMPARE[op](value(lhs, env), value(rhs, env))
        case Select(condition, then, otherwise):
            return value(then if value(condition, env) else otherwise, env)
        case _:
            raise NotImplementedError(expr)


@st.composite
def exprs(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaves: list[Expr] = [I, J, IntImm(draw(st.integers(-4, 4)))]
        return draw(st.sampled_from(leaves))
    if draw(st.integers(0, 4)) == 0:
        op = draw(st.sampled_from(get_args(CompareOp)))
        sides = [draw(exprs(depth - 1)) for _ in range(4)]
        return Select(Compare(op, *sides[:2]), *sides[2:])
    arithmetic: ArithOp = draw(st.sampled_from(list(ARITHMETIC)))
    needs_number = arithmetic in ("//", "%", ">>")
    rhs = IntImm(draw(st.integers(1, 5))) if needs_number else draw(exprs(depth - 1))
    return BinOp(arithmetic, draw(exprs(depth - 1)), rhs)


@given(exprs())
def test_values_are_those_of_python_at_each_point(expr: Expr) -> None:
    points = grid(AXES)
    shape = tuple(map(len, AXES.values()))
    expected = [
        value(expr, dict(zip(AXES, map(int, p), strict=True))) for p in product(*AXES.values())
    ]
    for got in (value_at(expr, points), form_value(affine(expr), points)):
        assert np.broadcast_to(got, shape).ravel().tolist() == expected


@pytest.mark.parametrize(
    "expr",
    [
        Var("n"),
        BinOp("//", I, J),
        BinOp("<<", I, IntImm(1)),
        BinOp(">>", I, J),
        BinOp(">>", I, IntImm(32)),
        Load(make_buffer("A", (8,), "int32"), (I,)),
    ],
)
def test_what_the_variables_do_not_determine_is_unknown(expr: Expr) -> None:
    with pytest.raises(UnknownError):
        value_at(expr, grid(AXES))
