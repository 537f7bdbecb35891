"""Names for values, and abbreviations of expressions."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.core.nodes import (
    Let,
)
from compiler.ir.core.visit import walk
from compiler.script import ScriptError
from tests.unit.compiler.script.round_trips import (
    in_block,
    outputs,
)

A = np.linspace(-2, 2, 8, dtype="float32")


@pytest.mark.parametrize(
    "body",
    [
        "x: T.let[T.float32] = A[vi]\nB[vi] = x + x",
        "x: T.let = A[vi]\nB[vi] = x + x",
        "x: T.float32 = A[vi]\nB[vi] = x + x",
        "x = A[vi]\nB[vi] = x + x",
        "with T.LetStmt(A[vi]) as x:\n    B[vi] = x + x",
        'x = T.var("float32")\nwith T.let(x, A[vi]):\n    B[vi] = x + x',
    ],
)
def test_a_value_may_have_a_name(body: str) -> None:
    func = in_block(body)
    (let,) = (node for node in walk(func.body) if isinstance(node, Let))
    assert let.var.dtype == "float32"
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A + A)


def test_a_named_value_is_computed_once() -> None:
    func = in_block("x: T.let = A[vi]\nB[vi] = 0.0\nB[vi] = x")
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A)


def test_what_follows_a_with_is_not_in_its_scope() -> None:
    func = in_block("with T.LetStmt(A[vi]) as x:\n    B[vi] = x\nB[vi] = B[vi] + 1.0")
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A + 1)


def test_a_value_of_a_loop_can_not_be_changed_inside() -> None:
    with pytest.raises(ScriptError, match="x has an outer value already"):
        in_block("x = A[vi]\nfor j in range(2):\n    x = x + 1.0\nB[vi] = x")


def test_an_abbreviation_stands_for_its_expression() -> None:
    func = in_block("x = T.meta_var(vi // 2 * 2)\nB[vi] = A[x]")
    assert not any(isinstance(node, Let) for node in walk(func.body))
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A[np.arange(8) // 2 * 2])


def test_abbreviations_of_abbreviations_are_bounded() -> None:
    chain = "\n".join(f"x{n} = T.meta_var(x{n - 1} + x{n - 1})" for n in range(1, 60))
    with pytest.raises(ScriptError, match="names and functions expand to more than"):
        in_block(f"x0 = T.meta_var(vi)\n{chain}\nB[vi] = T.Cast('float32', x59)")


def test_a_let_expression_is_its_body_with_the_value() -> None:
    func = in_block("B[vi] = T.Let(x * x, where={x: A[vi] + 1.0})")
    np.testing.assert_allclose(outputs(func, A=A)["B"], (A + 1) ** 2, rtol=1e-6)
