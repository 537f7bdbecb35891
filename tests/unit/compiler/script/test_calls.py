"""Functions and operators of TVM's scripts."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.core.nodes import (
    IntImm,
    Ramp,
    Store,
)
from compiler.ir.core.visit import walk
from compiler.script.error import ScriptError
from tests.unit.compiler.script.round_trips import (
    in_block,
    outputs,
    round_tripped,
)

A = np.linspace(-2, 2, 8, dtype="float32")


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
        ("T.exp(A[vi], dtype='float32')", "T.exp(A[vi])"),
        ("T.if_then_else(vi < 3, A[vi], 0.0, dtype='float32')", None),
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


@pytest.mark.parametrize("name", ["Div", "truncdiv", "truncmod"])
def test_quotients_and_remainders_of_a_division_by_zero_are_zero(name: str) -> None:
    n = np.array([7, -7, 6, -6, 1, -1, 0, -8], "int32")
    func = in_block(f"B[vi] = T.{name}(N[vi], N[vi] - N[vi])")
    np.testing.assert_array_equal(outputs(func, N=n)["B"], np.zeros(8))


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


def test_the_declared_type_of_a_result_is_its_type() -> None:
    with pytest.raises(ScriptError, match="the result is float32, not float16"):
        in_block("B[vi] = T.sqrt(A[vi], dtype='float16')")
