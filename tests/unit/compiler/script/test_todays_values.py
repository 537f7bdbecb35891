"""Values, statements and expressions of today's programs: each is read, printed and read back."""

import numpy as np
import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    Call,
    Evaluate,
    IntImm,
    Let,
    Ramp,
    Store,
    StringImm,
)
from compiler.ir.core.visit import walk
from compiler.script import ScriptError
from tests.unit.compiler.script.round_trips import (
    in_block,
    outputs,
    round_tripped,
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


def test_calls_that_have_an_effect_are_statements() -> None:
    func = in_block('T.tvm_storage_sync("shared")\nT.evaluate(vi + 1)\nT.evaluate(0)\nB[vi] = 0.0')
    calls = [node.value for node in walk(func.body) if isinstance(node, Evaluate)]
    assert isinstance(calls[0], Call)
    assert calls[0].args[0] == StringImm("shared")
    assert calls[2] == IntImm(0)


def test_a_promise_is_a_statement() -> None:
    func = in_block("T.assume(N[vi] >= 0)\nB[vi] = 0.0")
    assert "T.assume(N[vi] >= 0)" in func.script()


def test_an_undefined_value_has_the_type_of_its_place() -> None:
    func = in_block("B[vi] = T.undef()")
    assert 'B[vi] = T.Cast("float32", T.undef())' in func.script()


def test_advice_and_assertions_are_read_over() -> None:
    func = in_block('T.attr({"pragma_x": 1})\nassert vi >= 0, "never"\nB[vi] = A[vi]')
    assert structural_equal(func, in_block("B[vi] = A[vi]"))


def test_several_stores_stand_in_one_block() -> None:
    func = in_block("B[vi] = A[vi]\nB[vi] += 1.0\nif vi < 3:\n    B[vi] = 0.0")
    np.testing.assert_array_equal(
        outputs(func, A=A)["B"], np.where(np.arange(8) < 3, 0, A + 1).astype("f4")
    )


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("A[vi] + vi", 'A[vi] + T.Cast("float32", vi)'),
        ("T.max(N[vi], 1.5)", 'T.max(T.Cast("float32", N[vi]), T.float32(1.5))'),
        ("N[vi] + T.int64(1)", 'T.Cast("float32", T.Cast("int64", N[vi]) + T.int64(1))'),
        ("T.int32(3)", "T.float32(3.0)"),
        ("vi", 'T.Cast("float32", vi)'),
        ("~N[vi]", 'T.Cast("float32", ~N[vi])'),
        ("T.bitwise_not(N[vi])", 'T.Cast("float32", ~N[vi])'),
        ("A[vi].astype('float32')", 'T.Cast("float32", A[vi])'),
        ("T.reinterpret('float32', N[vi])", 'T.reinterpret("float32", N[vi])'),
        ("T.isnan(A[vi])", 'T.Cast("float32", T.isnan(A[vi]))'),
        ("T.Div(vi, 3)", 'T.Cast("float32", vi // 3)'),
        ("T.truncmod(vi, 3)", 'T.Cast("float32", vi % 3)'),
        ("T.ceildiv(vi, 3)", 'T.Cast("float32", (vi + 3 - 1) // 3)'),
        ("T.truncmod(A[vi], A[vi])", "T.fmod(A[vi], A[vi])"),
        ("T.EQ(vi, 3)", 'T.Cast("float32", vi == 3)'),
        ("T.float32(0.1)", "T.float32(0.10000000000000001)"),
        ("T.min_value('float32')", "T.float32(-340282346638528859811704183484516925440.0)"),
        ("T.Select(T.bool(True), A[vi], 0)", "T.Select(T.bool(True), A[vi], T.float32(0.0))"),
        ("T.if_then_else(T.likely(vi < 3), A[vi], 0)", None),
        ("T.shift_left(vi, 2) | T.bitwise_and(vi, 1)", None),
        ("A[T.ceildiv(vi, 2)]", None),
    ],
)
def test_expressions_of_tvm(value: str, printed: str | None) -> None:
    func = in_block(f"B[vi] = {value}")
    if printed is not None:
        assert f"= {printed}\n" in func.script()


@pytest.mark.parametrize("name", ["Div", "truncdiv", "truncmod"])
def test_quotients_round_towards_zero(name: str) -> None:
    n = np.array([7, -7, 6, -6, 1, -1, 0, -8], "int32")
    for divisor in (3, -3):
        func = in_block(f"B[vi] = T.{name}(N[vi], {divisor})")
        wanted = np.fmod(n, divisor) if name == "truncmod" else np.trunc(n / divisor)
        np.testing.assert_array_equal(outputs(func, N=n)["B"], wanted)


@pytest.mark.parametrize(
    "name",
    [
        "acos",
        "asin",
        "asinh",
        "atan",
        "cosh",
        "exp10",
        "isfinite",
        "isinf",
        "isnan",
        "log1p",
        "tan",
    ],
)
def test_functions_of_one_argument(name: str) -> None:
    with np.errstate(all="ignore"):
        inputs = np.array([0.5, 0.25, 0.9, np.inf, -np.inf, np.nan, 0, 0.1], "float32")
        known = {"acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan}
        function = known.get(name, getattr(np, name, None)) or (lambda x: 10.0**x)
        wanted = function(inputs.astype("float64"))
    got = outputs(in_block(f"B[vi] = T.{name}(A[vi])"), A=inputs)["B"]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_functions_of_two_arguments() -> None:
    for name, reference in (
        ("atan2", np.arctan2),
        ("copysign", np.copysign),
        ("fmod", np.fmod),
        ("hypot", np.hypot),
    ):
        got = outputs(in_block(f"B[vi] = T.{name}(A[vi], 1.5)"), A=A)["B"]
        np.testing.assert_allclose(got, reference(A, 1.5), rtol=1e-5)


def test_slices_are_vectors() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 8), "float32")):
    with T.sblock("B"):
        B[0, 0:8] = A[0:16:2] * 2.0
        B[1, T.Ramp(0, 1, 8)] = T.Broadcast(T.float32(1), 8)
        for i in range(2):
            B[i + 2, i * 4:i * 4 + 4] = A[T.Ramp(i * 4, 1, 4)]
""")
    stores = [node for node in walk(func.body) if isinstance(node, Store)]
    assert stores[0].indices[1] == Ramp(IntImm(0), 1, 8)
    assert "B[0, 0:8] = A[T.Ramp(0, 2, 8)] * T.Broadcast(T.float32(2.0), 8)" in func.script()
