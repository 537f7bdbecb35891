"""`while` loops, and scalars whose value changes."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.evaluator import evaluate as evaluator
from compiler.ir.interpret.oracle import oracle_run
from compiler.ir.interpret.oracle.oracle import OracleError, interpret
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

COLLATZ = """
@T.prim_func
def main(N: T.Buffer((24,), "int32"), S: T.Buffer((24,), "int32")):
    for i in range(24):
        n: T.int32 = N[i]
        steps: T.int32 = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        S[i] = steps
"""

SEARCH = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), key: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    for i in T.{kind}(8):
        low: T.int32 = 0
        high: T.int32 = 64
        while low < high:
            middle: T.let[T.int32] = (low + high) // 2
            if A[middle] < key[i]:
                low = middle + 1
            else:
                high = middle
        B[i] = low
"""

ENDLESS = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    A[0] = T.float32(1)
    while A[0] > T.float32(0):
        A[1] = A[0]
"""

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
"""


def collatz_steps(n: int) -> int:
    return 0 if n == 1 else 1 + collatz_steps(3 * n + 1 if n % 2 else n // 2)


def test_a_loop_of_unknown_length() -> None:
    func = round_tripped(COLLATZ)
    numbers, steps = np.arange(1, 25, dtype="int32"), np.empty(24, "int32")
    build(func, "cpu -num-cores=1")(numbers, steps)
    expected = [collatz_steps(n) for n in range(1, 25)]
    assert steps.tolist() == expected
    assert interpret(func, {"N": numbers})["S"].tolist() == expected
    assert evaluator.evaluate(func, {"N": numbers})["S"].tolist() == expected


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized", "unroll"])
def test_each_iteration_has_its_own_scalars(kind: str) -> None:
    func = round_tripped(SEARCH.replace("{kind}", kind))
    rng = np.random.default_rng(0)
    sorted_numbers = np.sort(rng.random(64, "float32"))
    keys, found = rng.random(8, "float32"), np.empty(8, "int32")
    build(func, "cpu -num-cores=2")(sorted_numbers, keys, found)
    np.testing.assert_array_equal(found, np.searchsorted(sorted_numbers, keys))


def test_a_scalar_is_a_local_buffer_of_one_element() -> None:
    by_name = """    x: T.float32 = A[0]
    while x < T.float32(9):
        x *= T.float32(2)
    A[0] = x
"""
    written_out = """    with T.allocate((1,), "float32", scope="local") as x:
        x[0] = A[0]
        while x[0] < T.float32(9):
            x[0] = x[0] * T.float32(2)
        A[0] = x[0]
"""
    declared = by_name.replace(": T.float32 =", ' = T.local_scalar("float32", init=', 1)
    declared = declared.replace("A[0]\n", "A[0])\n", 1)
    expected = parse(HEAD + written_out)
    assert structural_equal(parse(HEAD + by_name), expected)
    assert structural_equal(parse(HEAD + declared), expected)


def test_a_scalar_that_never_changes_is_a_named_value() -> None:
    func = parse(HEAD + "    x: T.float32 = A[0]\n    A[1] = x + x\n")
    assert "x: T.let[T.float32] = A[0]" in func.script()


def test_a_buffer_of_another_block_may_have_the_name_of_a_value() -> None:
    block = """    with T.block("first"):
        x = T.alloc_buffer((1,))
        x[0] = A[0]
        A[1] = x[0]
"""
    func = parse(HEAD + block + "    x: T.float32 = A[0]\n    A[1] = x + x\n")
    assert "x: T.let[T.float32] = A[0]" in func.script()


def test_an_endless_loop_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_run, "_MAX_WHILE_STEPS", 1000)
    monkeypatch.setattr(evaluator, "_MAX_WHILE_STEPS", 100)
    func = parse(ENDLESS)
    array = np.zeros(8, "float32")
    with pytest.raises(OracleError, match=r"ran for 1000 iterations, .* they may never end"):
        interpret(func, {"A": array})
    with pytest.raises(evaluator.EvaluationError, match="ran for 100 iterations"):
        evaluator.evaluate(func, {"A": array})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("    while A[0]:\n        A[0] = T.float32(1)\n", "expected a condition, got float32"),
        ("    while A[0] > T.float32(0):\n        pass\n", "expected at least one statement"),
        (
            "    while A[0] > T.float32(0):\n        A[0] = T.float32(0)\n    else:\n"
            "        A[0] = T.float32(1)\n",
            "a loop has no else",
        ),
        (
            "    while A[0] > T.float32(0):\n        A[8] = T.float32(0)\n",
            "prove that A[8] is in bounds",
        ),
        (
            "    for i in T.parallel(8):\n        while A[0] > T.float32(0):\n"
            "            A[0] = T.float32(0)\n",
            "race",
        ),
        ("    x: T.let[T.float32] = A[0]\n    x += T.float32(1)\n", "a value can't be changed"),
        (
            "    x: T.int32 = 0\n    x = A[0]\n    A[0] = T.float32(x)\n",
            "x holds int32, got float32",
        ),
    ],
)
def test_a_wrong_loop_is_refused_with_its_place(body: str, reason: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + body)
    assert reason in str(caught.value)
