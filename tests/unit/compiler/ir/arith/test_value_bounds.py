"""Bounds of floating-point expressions hold however their operations round."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.value_bounds import bounds_at
from compiler.ir.arith.values import UnknownError
from compiler.ir.core.nodes import (
    BinOp,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Var,
)

V = Var("v")
POINTS = {V: np.arange(-20, 21)}


def rounded(expr: Expr, v: int, fuses: bool) -> Any:
    """Return the value of an expression in float32, with products fused into sums or not."""
    match expr:
        case Var():
            return v
        case IntImm(value):
            return value
        case FloatImm(value):
            return np.float32(value)
        case Cast("float32", value):
            return np.float32(rounded(value, v, fuses))
        case Cast(_, value):
            return int(np.trunc(rounded(value, v, fuses)))
        case Call("floor", (value,), _):
            return np.floor(rounded(value, v, fuses))
        case BinOp("+", BinOp("*", a, b), c) if fuses:
            exact = float(rounded(a, v, fuses)) * float(rounded(b, v, fuses))
            return np.float32(exact + float(rounded(c, v, fuses)))
        case BinOp(op, lhs, rhs):
            a, b = rounded(lhs, v, fuses), rounded(rhs, v, fuses)
            return np.float32({"+": a + b, "-": a - b, "*": a * b}[op])
        case _:
            raise AssertionError(expr)


@st.composite
def floats(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        number = FloatImm(draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1 / 3, 2.0, 7.3])))
        return Cast("float32", V) if draw(st.booleans()) else number
    ops: tuple[Literal["+", "-", "*"], ...] = ("+", "-", "*")
    op = draw(st.sampled_from(ops))
    return BinOp(op, draw(floats(depth=depth - 1)), draw(floats(depth=depth - 1)))


@given(floats())
def test_every_rounding_is_within_the_bounds(expr: Expr) -> None:
    index = Cast("int32", Call("floor", (expr,), "float32"))
    low, high = (np.broadcast_to(side, (41,)) for side in bounds_at(index, POINTS))
    for number, v in enumerate(range(-20, 21)):
        for fuses in (False, True):
            assert low[number] <= rounded(index, v, fuses) <= high[number]


def test_bounds_are_narrow_unless_a_rounding_decides() -> None:
    scaled = BinOp("*", Cast("float32", V), FloatImm(0.1))
    low, high = bounds_at(Cast("int32", Call("floor", (scaled,), "float32")), POINTS)
    unknown = [v for v, a, b in zip(POINTS[V], low, high, strict=True) if a != b]
    assert unknown == [-20, -10, 10, 20]  # 0.1 is not exact, and 0 * 0.1 is


def test_both_sides_of_a_choice_count() -> None:
    choice = Conditional(Compare("<", Cast("float32", V), FloatImm(0.3)), V, IntImm(3))
    low, high = bounds_at(choice, POINTS)
    assert (low.min(), high.max()) == (-20, 20)
    assert (low.max(), high.min()) == (3, 3)


@pytest.mark.parametrize(
    "expr",
    [
        Call("exp", (Cast("float32", V),), "float32"),
        BinOp("/", FloatImm(1.0), Cast("float32", V)),
        Cast("int8", BinOp("*", Cast("float32", V), FloatImm(100.0))),
        Cast("float32", FloatImm(float("inf"))),
    ],
)
def test_what_has_no_bounds_is_unknown(expr: Expr) -> None:
    with pytest.raises(UnknownError):
        bounds_at(expr, POINTS)
