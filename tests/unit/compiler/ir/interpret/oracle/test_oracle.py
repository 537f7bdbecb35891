"""The oracle against the scalar evaluator, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops, te
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import OracleError, compare, interpret
from compiler.script import parse
from tests.unit.compiler.ir.interpret.oracle.contractions import SPECS, compute
from tests.unit.compiler.ir.interpret.oracle.oracle_strategies import way as way

Array = NDArray[Any]


@pytest.mark.parametrize("spec", SPECS)
def test_the_oracle_agrees_with_the_scalar_evaluator(spec: str) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, seed=1)
    assert compare(func, evaluate(func, inputs), interpret(func, inputs)) < 1e-5


def test_integers_wrap_around_in_their_type() -> None:
    func = ops.matmul(1, 1, 4, "int8")
    ones = np.full((1, 4), 100, np.int8)
    assert interpret(func, {"A": ones, "B": ones.T.copy()})["C"][0, 0] == np.int8(40000 % 256)


def test_reductions_that_are_no_sums() -> None:
    a = te.placeholder((3, 8), "float32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    array = random_inputs(compute((3,), lambda i: te.max(a[i, k], axis=k), a), 0)["A"]
    for reduce, reference in ((te.max, np.max), (te.min, np.min), (te.prod, np.prod)):
        func = compute((3,), lambda i, r=reduce: r(a[i, k], axis=k), a)
        np.testing.assert_allclose(
            interpret(func, {"A": array})["out"], reference(array, axis=1), rtol=1e-6
        )


def test_an_update_that_is_no_combination_runs_step_by_step() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] * 0.5 + A[vi, vk]
"""
    func = parse(text)
    inputs = random_inputs(func, 0)
    expected = np.zeros(4)
    for k in range(8):
        expected = expected * 0.5 + inputs["A"][:, k]
    np.testing.assert_allclose(interpret(func, inputs)["B"], expected, rtol=1e-6)


@pytest.mark.parametrize(("shape", "axis"), [((3000,), 0), ((300, 50), 0), ((3, 700), 1)])
def test_running_sums_are_rounded_once(shape: tuple[int, ...], axis: int) -> None:
    func = ops.cumsum(*shape, axis=axis)
    inputs = random_inputs(func, 0)
    expected = inputs["A"].astype(np.float64).cumsum(axis).astype(np.float32)
    np.testing.assert_array_equal(interpret(func, inputs)["B"], expected)
    assert (inputs["A"].cumsum(axis) != expected).any()


def test_two_results_of_one_reduction() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), M: T.Buffer((4,), "float32"),
         P: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 8):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                M[vi] = T.min_value("float32")
            P[vi] = T.Select(A[vi, vk] > M[vi], vk, P[vi])
            M[vi] = T.max(M[vi], A[vi, vk])
"""
    func = parse(text)
    inputs = random_inputs(func, 0)
    outputs = interpret(func, inputs)
    np.testing.assert_array_equal(outputs["P"], inputs["A"].argmax(axis=1))
    np.testing.assert_array_equal(outputs["M"], inputs["A"].max(axis=1))
    assert compare(func, evaluate(func, inputs), outputs) == 0


def test_a_parameter_may_be_updated_in_place() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] * 2.0
"""
    func = parse(text)
    assert param_roles(func) == (("A",), ("A",))
    given = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(interpret(func, {"A": given})["A"], given * 2)
    np.testing.assert_array_equal(given, np.arange(8))


def test_what_would_take_too_long_is_refused_before() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32")):
    for i, j, t in T.grid(1023, 1023, 1000):
        B[i + 1, j] = B[i, j + 1] * 0.5 + A[i, j]
"""
    func = parse(text)
    with pytest.raises(OracleError, match=r"would take about [0-9]+ s to run main: expected 60 s"):
        interpret(func, random_inputs(func, 0), limit_secs=60)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input A is missing"),
        (
            {"A": np.zeros((2, 2), np.float32)},
            r"\(2, 2\): expected float32 of shape \(4,\)",
        ),
        ({"A": np.zeros(4)}, "input A is float64"),
    ],
)
def test_inputs_must_fit(inputs: dict[str, Array], message: str) -> None:
    with pytest.raises(OracleError, match=message):
        interpret(ops.relu(4), inputs)
