"""Expressions, one scalar at a time, against Python and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    IntImm,
    Load,
    Select,
    Store,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate

ZERO = IntImm(0)


def calculate(value: Expr, dtype: DType, **arrays: np.ndarray) -> Any:
    out = make_buffer("out", (1,), dtype)
    params = (*(BUFFERS[name] for name in arrays), out)
    root = Block("root", (), (), (), Store(out, (ZERO,), value))
    func = PrimFunc("main", params, BlockRealize((), TRUE, root))
    return evaluate(func, arrays)["out"][0]


BUFFERS = {
    "A": make_buffer("A", (1,), "int32"),
    "B": make_buffer("B", (1,), "int32"),
    "X": make_buffer("X", (1,), "float32"),
}
A, B, X = (Load(buffer, (ZERO,)) for buffer in BUFFERS.values())
SMALL = st.integers(-1000, 1000)


def int32(value: int) -> np.ndarray:
    return np.array([value], np.int32)


@given(SMALL, SMALL, st.sampled_from(["+", "-", "*", "&", "|", "^", "min", "max"]))
def test_integers_are_those_of_python(a: int, b: int, op: Any) -> None:
    python = {"min": "min(a, b)", "max": "max(a, b)"}.get(op, f"a {op} b")
    expected = eval(python, {"a": a, "b": b, "min": min, "max": max})
    assert calculate(BinOp(op, A, B), "int32", A=int32(a), B=int32(b)) == expected


@given(SMALL, SMALL.filter(bool))
def test_division_rounds_down(a: int, b: int) -> None:
    given_ = {"A": int32(a), "B": int32(b)}
    assert calculate(BinOp("//", A, B), "int32", **given_) == a // b
    assert calculate(BinOp("%", A, B), "int32", **given_) == a % b


def test_sums_wrap_around() -> None:
    a = np.array([2**31 - 1], np.int32)
    assert calculate(BinOp("+", A, IntImm(1)), "int32", A=a) == -(2**31)


def test_a_conditional_does_not_touch_the_other_side() -> None:
    outside = Load(BUFFERS["A"], (BinOp("+", ZERO, IntImm(1)),))
    chosen = Conditional(Compare("==", A, ZERO), IntImm(7), outside)
    assert calculate(chosen, "int32", A=int32(0)) == 7


def test_a_select_computes_both_sides() -> None:
    chosen = Select(Compare("<", A, B), A, B)
    assert calculate(chosen, "int32", A=int32(3), B=int32(5)) == 3


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh"])
def test_functions_are_those_of_numpy(name: str) -> None:
    x = np.array([0.625], np.float32)
    expected = getattr(np, name)(x)[0]
    got = calculate(Call(name, (X,), "float32"), "float32", X=x)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_casts_truncate_and_wrap() -> None:
    x = np.array([-2.75], np.float32)
    assert calculate(Cast("int32", X), "int32", X=x) == -2
    assert calculate(Cast("int32", Cast("int8", A)), "int32", A=int32(300)) == 44


def test_a_loaded_index_out_of_bounds_reads_the_nearest_element() -> None:
    assert calculate(Load(BUFFERS["B"], (A,)), "int32", A=int32(99), B=int32(5)) == 5
