"""`break` and `continue` against the same statements in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.interpret.evaluator import evaluate as evaluator
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
"""

SEARCH = """
for i in range(16):
    B[i] = -1
for i in range(16):
    if A[i] == 5:
        B[0] = i
        break
    B[i] = A[i]
"""

SKIPPED = """
for i in range(16):
    B[i] = 0
    if A[i] % 2 == 1:
        continue
    B[i] = A[i]
"""

NESTED = """
for i in range(16):
    B[i] = 0
    if A[i] == 0:
        continue
    for j in range(16):
        if A[j] == A[i]:
            if j > 7:
                break
            else:
                continue
        if A[j] == 3:
            break
        B[i] = B[i] + A[j]
    if A[i] == 9:
        break
    B[i] = B[i] + 100
"""

ENDLESS = """
for i in range(16):
    n: T.int32 = A[i]
    steps: T.int32 = 0
    while True:
        if n <= 1:
            break
        steps += 1
        if n % 2 == 0:
            n = n // 2
            continue
        n = 3 * n + 1
    B[i] = steps
"""

# After the break, the condition would read past the end.
PAST_THE_END = """
for i in range(16):
    B[i] = 0
last: T.int32 = 0
while A[last] < 100:
    B[last] = A[last] + 1
    last += 1
    if last == 16:
        last = 1000000000
        break
"""

IN_BLOCK = """
for i in range(16):
    with T.sblock("B"):
        v = T.axis.spatial(16, i)
        B[v] = 0
        for j in range(16):
            if A[j] > A[v]:
                continue
            if A[j] == 4:
                break
            B[v] = B[v] + 1
"""

PROGRAMS = [SEARCH, SKIPPED, NESTED, ENDLESS, PAST_THE_END]


def indented(body: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in body.strip().splitlines())


def in_python(body: str, a: np.ndarray) -> list[int]:
    """Run the same statements as Python."""
    values: dict[str, Any] = {"A": a.tolist(), "B": [0] * 16}
    exec(body.replace(": T.int32", ""), values)
    return values["B"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "body", PROGRAMS, ids=["search", "skipped", "nested", "endless", "past_the_end"]
)
def test_jumps_do_what_python_does(body: str) -> None:
    func = round_tripped(indented(body))
    kernel = build(func, "cpu -num-cores=1")
    for seed in range(4):
        a = np.random.default_rng(seed).integers(0, 12, 16).astype("int32")
        b = np.zeros(16, "int32")
        kernel(a, b)
        expected = in_python(body, a)
        assert b.tolist() == expected
        assert interpret(func, {"A": a, "B": b * 0})["B"].tolist() == expected
        assert evaluator.evaluate(func, {"A": a, "B": b * 0})["B"].tolist() == expected


def test_a_block_with_jumps_may_be_scheduled() -> None:
    schedule = Schedule(round_tripped(indented(IN_BLOCK)))
    outer, inner = schedule.split(schedule.get_loops("B")[0], factors=[4, None])
    schedule.parallel(outer)
    schedule.unroll(inner)
    a = np.random.default_rng(0).integers(0, 12, 16).astype("int32")
    b = np.zeros(16, "int32")
    build(schedule.func, "cpu -num-cores=2")(a, b)
    expected = []
    for value in a:
        before = a[: list(a).index(4)] if 4 in a and value >= 4 else a
        expected.append(int((before <= value).sum()))
    assert b.tolist() == expected
    assert interpret(schedule.func, {"A": a})["B"].tolist() == expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for i in T.parallel(16):\n    if A[i] > 0:\n        break\n", "break in T.parallel"),
        ("for i in T.unroll(16):\n    if A[i] > 0:\n        continue\n", "continue in T.unroll"),
        ("for i, j in T.grid(4, 4):\n    if A[i] > j:\n        break\n", "a loop for each"),
        (
            "for i in range(16):\n    if A[i] > 0:\n        break\n"
            '    with T.sblock("B"):\n        v = T.axis.spatial(16, i)\n        B[v] = A[v]\n',
            "put the loop into a block",
        ),
        ("if A[0] > 0:\n    break\n", "expected a statement of the dialect"),
        (
            "for i in range(16):\n" + "    if A[i] > 0:\n        continue\n" * 17,
            "17 break and continue: expected 16 at most",
        ),
    ],
)
def test_a_misplaced_jump_is_refused(body: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        parse(indented(body))
