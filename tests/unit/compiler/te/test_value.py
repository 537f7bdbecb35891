"""Values of tensor expressions: types, operators and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ir.text.printer import script
from compiler.ir.verify.verify import VerifyError
from compiler.script import parse
from tests.unit.compiler.te.tensors import matrix


def test_operands_are_widened_to_a_common_type() -> None:
    A = matrix()
    text = script(
        te.create_prim_func([A, te.compute((4, 4), lambda i, j: A[i, j] * i + 1, name="B")])
    )
    assert 'A[v_i, v_j] * T.Cast("float32", v_i) + T.float32(1.0)' in text


def test_what_changes_nothing_is_left_out() -> None:
    A = matrix()
    B = te.compute((4, 4), lambda i, j: (A[i + 0, j * 1] + 0) * 1 - 0, name="B")
    assert "B[v_i, v_j] = A[v_i, v_j]\n" in script(te.create_prim_func([A, B]))


def test_operators_and_functions() -> None:
    A = matrix()
    array = random_inputs(te.create_prim_func([A, te.compute((1,), lambda i: A[i, i])]), 0)["A"]
    i, j = np.meshgrid(np.arange(4), np.arange(4), indexing="ij")
    a = array
    tanh, sigmoid = np.tanh(a), 1 / (1 + np.exp(-a))
    cases: list[tuple[Any, Any]] = [
        (lambda i, j: 1 - A[i, j] / 2 + -A[i, j] * 3, 1 - a / 2 - a * 3),
        (lambda i, j: te.cast("float32", (i * 4 + j) // 3 % 2), (i * 4 + j) // 3 % 2),
        (lambda i, j: (10 // (j + 1)).astype("float32"), 10 // (j + 1)),
        (lambda i, j: te.if_then_else(te.all(i < 2, j >= 1), A[i, j], 0), a * (i < 2) * (j >= 1)),
        (lambda i, j: te.select(te.any(i == 2, j != 1), 1.0, 0), (i == 2) | (j != 1)),
        (lambda i, j: te.if_then_else(te.logical_not(i <= j), 1.0, 2.0), np.where(i > j, 1, 2)),
        (lambda i, j: te.sqrt(te.abs(A[i, j])) + te.exp(A[i, j]), np.sqrt(abs(a)) + np.exp(a)),
        (lambda i, j: te.tanh(A[i, j]) * te.sigmoid(A[i, j]), tanh * sigmoid),
        (lambda i, j: te.power(te.abs(A[i, j]), 3), abs(a) ** 3),
        (lambda i, j: te.floor(A[i, j] * 3) + te.round(A[i, j]), np.floor(a * 3) + np.rint(a)),
        (lambda i, j: ((i << 2 | j) ^ 3).astype("float32"), (i << 2 | j) ^ 3),
        (lambda i, j: (~(i & 2) >> 1).astype("float32"), ~(i & 2) >> 1),
        (lambda i, j: te.select((i < 2) & ~(j < 1), 1.0, 2.0), np.where((i < 2) & (j > 0), 1, 2)),
        (lambda i, j: te.truncdiv(i - 3, 2) + te.truncmod(i - 3, 2), -((3 - i) // 2 + (3 - i) % 2)),
        (lambda i, j: te.div(i, 2) + te.div(A[i, j], 2), i // 2 + a / 2),
        (lambda i, j: te.floordiv(i, 2) + te.floormod(i, 3), i // 2 + i % 3),
        (lambda i, j: te.atan(A[i, j]) + te.tan(A[i, j]), np.arctan(a) + np.tan(a)),
        (lambda i, j: te.sinh(A[i, j]) * te.cosh(A[i, j]), np.sinh(a) * np.cosh(a)),
        (lambda i, j: te.logaddexp(A[i, j], A[j, i]), np.logaddexp(a, a.T)),
        (lambda i, j: te.select(te.isnan(A[i, j] / 0), 1.0, 2.0), np.full((4, 4), 2)),
        (lambda i, j: te.select(te.isfinite(A[i, j] / 0), 1.0, 2.0), np.full((4, 4), 2)),
        (lambda i, j: te.fmod(A[i, j], 0.25), np.fmod(a, 0.25)),
        (lambda i, j: te.const(2, "float32"), np.full((4, 4), 2)),
        (lambda i, j: 2.5, np.full((4, 4), 2.5)),
    ]
    for element, expected in cases:
        func = te.create_prim_func([A, te.compute((4, 4), element, name="B")])
        result = interpret(func, {"A": array})["B"]
        np.testing.assert_allclose(result, expected.astype(np.float32), rtol=1e-5, atol=1e-6)
        assert structural_equal(parse(script(func)), func)


@pytest.mark.parametrize("function", [te.truncdiv, te.truncmod, te.floordiv, te.floormod])
def test_quotient_and_remainder_of_a_division_by_zero_are_zero(function: Any) -> None:
    A, B = (te.placeholder((6,), "int32", name=name) for name in "AB")
    func = te.create_prim_func([A, B, te.compute((6,), lambda i: function(A[i], B[i]), name="C")])
    a, b = np.array([7, -7, 0, 7, -7, 6], "int32"), np.array([0, 0, 0, 4, 4, -4], "int32")
    expected = {
        "truncdiv": [0, 0, 0, 1, -1, -1],
        "truncmod": [0, 0, 0, 3, -3, 2],
        "floordiv": [0, 0, 0, 1, -2, -2],
        "floormod": [0, 0, 0, 3, 1, -2],
    }
    for program in (func, parse(script(func))):
        result = interpret(program, {"A": a, "B": b})["C"]
        np.testing.assert_array_equal(result, expected[function.__name__])


def test_a_remainder_by_the_number_zero_is_refused_as_a_remainder() -> None:
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: te.truncmod(A[i], 0), name="B")
    with pytest.raises(VerifyError, match=r"A\[v_i\] % 0 divides by zero"):
        te.create_prim_func([A, B])


@pytest.mark.parametrize("dtype", ["float31", None, [], 1])
def test_an_unknown_type_is_refused_where_it_is_given(dtype: Any) -> None:
    A = te.placeholder((4,), name="A")
    uses: list[Callable[[], object]] = [
        lambda: A[0].astype(dtype),
        lambda: te.const(1, dtype),
        lambda: te.var("n", dtype),
        lambda: te.placeholder((4,), dtype),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="unknown type"):
            use()


def test_an_expression_that_is_nested_too_deep_is_refused() -> None:
    A = te.placeholder((4,), name="A")

    def element(i: te.Value) -> te.Value:
        total = A[i]
        for _ in range(5000):
            total = total + A[i]
        return total

    with pytest.raises(ValueError, match=r"nested deeper than 128 levels: use te\.sum"):
        te.compute((4,), element)


def test_an_element_that_is_nested_too_deep_is_refused() -> None:
    A = te.placeholder((4,), name="A")

    def element(i: te.Value) -> te.Value:
        value = A[i]
        for _ in range(30):
            value = te.sigmoid(value) * te.tanh(value)
        return value

    with pytest.raises(VerifyError, match="an element of B is too large: "):
        te.create_prim_func([A, te.compute((4,), element, name="B")])
