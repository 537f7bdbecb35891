"""Expressions as text: parentheses only if precedence needs them, as Python reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
    make_buffer,
)
from compiler.ir.text.print_expr import show_expr

i, j = Var("i"), Var("j")
A = make_buffer("A", (8, 8))
X = FloatImm(0.5)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (BinOp("-", i, BinOp("-", j, IntImm(1))), "i - (j - 1)"),
        (BinOp("-", BinOp("-", i, j), IntImm(1)), "i - j - 1"),
        (BinOp("*", BinOp("+", i, j), IntImm(2)), "(i + j) * 2"),
        (BinOp("min", i, j), "T.min(i, j)"),
        (BinOp("^", i, IntImm(-1)), "~i"),
        (Not(Compare("<", i, j)), "not i < j"),
        (Compare("==", Cast("int32", Compare("<", i, j)), i), 'T.Cast("int32", i < j) == i'),
        (
            Logic("or", Logic("and", Compare("<", i, j), Compare("<", j, i)), Compare("==", i, j)),
            "i < j and j < i or i == j",
        ),
        (Compare("!=", X, X), "T.isnan(T.float32(0.5))"),
        (Select(Compare("<", i, j), X, X), "T.Select(i < j, T.float32(0.5), T.float32(0.5))"),
        (Conditional(Compare("<", i, j), i, j), "T.if_then_else(i < j, i, j)"),
        (Load(A, (i, j)), "A[i, j]"),
        (Load(make_buffer("S", ()), ()), "S[()]"),
        (Ramp(i, 2, 4), "T.Ramp(i, 2, 4)"),
        (Broadcast(i, 4), "T.Broadcast(i, 4)"),
        (Cast("float32", Ramp(i, 1, 4)), 'T.Cast("float32x4", T.Ramp(i, 1, 4))'),
        (Call("abs", (X,), "float32"), "T.fabs(T.float32(0.5))"),
        (IntImm(3, "int64"), "T.int64(3)"),
        (IntImm(1, "bool"), "T.bool(True)"),
        (FloatImm(float("-inf")), 'T.float32("-inf")'),
        (FloatImm(0.1, "float64"), "T.float64(0.10000000000000001)"),
    ],
)
def test_expressions_by_hand(expr: Expr, text: str) -> None:
    assert show_expr(expr) == text


def grow(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    ops: Any = st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
    return st.builds(BinOp, ops, children, children)


LEAVES = st.sampled_from([i, j]) | st.integers(0, 3).map(IntImm)


def value(expr: Any, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs):
            return int(eval(f"a {op} b", {"a": value(lhs, env), "b": value(rhs, env)}))
        case _:
            raise AssertionError(expr)


@given(st.recursive(LEAVES, grow, max_leaves=6), st.integers(0, 5), st.integers(1, 5))
def test_python_reads_the_text_as_the_expression(expr: Expr, a: int, b: int) -> None:
    try:
        expected = value(expr, {i: a, j: b})
    except (ZeroDivisionError, ValueError, OverflowError):
        return
    assert eval(show_expr(expr), {"i": a, "j": b}) == expected
