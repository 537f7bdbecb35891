"""Buffers with vectors as elements, and lanes of vectors that are put together anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "float32x4"), C: T.Buffer((8,), "float32x2")):
"""


def result(text: str, **inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the last parameter, which all ways to run a program must compute alike."""
    func = round_tripped(text)
    output = func.buffers[-1]
    got = np.full(static_shape(output), 77, output.dtype)
    build(func, "cpu -num-cores=1")(*(inputs[b.name] for b in func.buffers[:-1]), got)
    np.testing.assert_array_equal(interpret(func, inputs)[output.name], got)
    np.testing.assert_array_equal(evaluate(func, inputs)[output.name], got)
    return got


def test_an_array_of_vectors_has_their_lanes_as_its_last_axis() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32x4"), B: T.Buffer((8,), "float32x4")):
    V = T.alloc_buffer((8,), "float32x4")
    for i in range(8):
        with T.sblock("V"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(V[vi])
            V[vi] = A.vload([vi], "float32x4") * T.Broadcast(T.float32(2), 4)
    for i in range(8):
        B[i] = V[7 - i] + A[i]
"""
    a = np.arange(32, dtype="float32").reshape(8, 4)
    np.testing.assert_array_equal(result(text, A=a), 2 * a[::-1] + a)


@pytest.mark.parametrize(
    ("value", "of", "lanes"),
    [
        ('T.vectorcombine("int8x16", X[i, 0:8], X[7 - i, 0:8])', "int8", None),
        ('T.vectorcombine(X[i, 0:8], X[7 - i, 0:8], dtype="int8x16")', "int8", None),
        ('T.vectorlow("int8x4", X[i, 0:8])', "int8", [0, 1, 2, 3]),
        ('T.vectorhigh("int8x4", X[i, 0:8])', "int8", [4, 5, 6, 7]),
        ("T.Shuffle([X[i, 0:8]], [7, 0, 0, 3])", "int8", [7, 0, 0, 3]),
        ("T.Shuffle([X[i, 0:2], X[i, 2:8]], [5, 1])", "int8", [5, 1]),
        ("T.Shuffle([X[i, 4], X[i, 0:8]], [0, 1, 8])", "int8", [4, 0, 7]),
        ("T.Shuffle([X[i, 0:8]], [6])", "int8", [6]),
        ("T.Shuffle([X[i, 0:8]], [6, 1])", "bfloat16", [6, 1]),
    ],
)
def test_lanes_are_put_together(value: str, of: str, lanes: list[int] | None) -> None:
    count = 16 if lanes is None else len(lanes)
    text = f"""
@T.prim_func
def main(X: T.Buffer((8, 8), "{of}"), Y: T.Buffer((8, {count}), "{of}")):
    for i in range(8):
        Y[i, {f"0:{count}" if count > 1 else "0"}] = {value}
"""
    x = np.random.default_rng(0).integers(-99, 99, (8, 8)).astype(of)
    expected = np.hstack([x, x[::-1]]) if lanes is None else x[:, lanes]
    np.testing.assert_array_equal(result(text, X=x), expected)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("C[0] = T.Shuffle([A[0]], [0, 4])", "lane 4 of 4: expected 0 to 3"),
        ("C[0] = T.Shuffle([A[0], 1], [0, 4])", "expected vectors of one type"),
        ("C[0] = T.Shuffle([], [0, 4])", "expected a list, such as"),
        ("C[0] = T.Shuffle([A[0]], [0, 1, 2])", "3 lane(s) for 2 element(s)"),
        ('C[0] = T.vectorlow("float32x4", A[0])', "the result is float32x2, not float32x4"),
        ('C[0] = T.vectorlow("float32x2", A[0, 0])', "A has 1 dimension(s), got 2 index(es)"),
        ('C[0] = A.vload([0], "float32x2")', "A has elements of 4 lanes, not of 2"),
        ("C[8] = T.Broadcast(T.float32(0), 2)", "prove that C[8, T.Ramp(0, 1, 2)] is in bounds"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_place(body: str, reason: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(f"{HEAD}    {body}\n")
    assert reason in str(caught.value)


def test_gpus_refuse_a_shuffle() -> None:
    func = parse(HEAD + "    for i in range(8):\n        C[i] = T.Shuffle([A[i]], [0, 3])\n")
    with pytest.raises(BuildError, match=r"T\.Shuffle is compiled for CPUs only"):
        build(func, "cuda -arch=sm_90a")
