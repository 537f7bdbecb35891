"""What an iteration leaves in a buffer for a later one is still there after lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.driver import lower
from compiler.ir.core.nodes import TRUE, Allocate, Block, BlockRealize
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.script.parser import parse
from tests.property.acceptance import Acceptance
from tests.targets import level

Choose = Callable[[Sequence[Any]], Any]

INDICES = (
    "j",
    "7 - j",
    "k",
    "3 - k",
    "i",
    "(j + i) % 8",
    "(j + k) % 8",
    "2 * j % 8",
    "(3 * j) % 8",
    "j // 2",
    "j // 4 * 4 + k",
    "j * i % 8",
    "N[i] % 8",
    "N[j] % 8",
)
CONDITIONS = (
    "j < 8 - i",
    "j < i",
    "j < 6",
    "k == 0",
    "k == 3",
    "k * 8 + j == 0",
    "i % 2 == 0",
    "(i * 8 + j) % 3 < 2",
    "i > 2 or j > 3",
    "i < 6 and j < 6",
    "A[j] > T.float32(3)",
)
EXTENTS = ("8", "8", "8 - i", "i", "5", "T.min(N[i], 8)")

moved_inwards = Acceptance()


def perhaps_under_a_condition(choose: Choose, store: str) -> list[str]:
    if choose((True, False)):
        return [store]
    return [f"if {choose(CONDITIONS)}:", f"    {store}"]


def program(choose: Choose) -> PrimFunc:
    """Return a program that fills `U` in the first of 8 iterations, then changes and reads it."""
    rank = choose((1, 2))

    def element() -> str:
        return "U[" + ", ".join(choose(INDICES) for _ in range(rank)) + "]"

    zeros, extents = ", ".join("zy"[:rank]), ", ".join("88"[:rank])
    lines = [
        "@T.prim_func",
        'def main(A: T.Buffer((8,), "float32"), N: T.Buffer((8,), "int32"),'
        ' C: T.Buffer((8, 4, 8, 3), "float32")):',
        f"    U = T.alloc_buffer(({extents},))",
        "    for i in range(8):",
        "        if i == 0:",
        f"            for {zeros} in T.grid({extents}):",
        f"                U[{zeros}] = T.float32(0.5)",
    ]
    for number in range(choose((1, 2, 3))):
        lines += ["        for k in range(4):", f"            for j in range({choose(EXTENTS)}):"]
        body: list[str] = []
        for _ in range(choose((1, 2))):
            value = f'A[j] + T.float32({number + 1}) * T.cast(i, "float32")'
            body += perhaps_under_a_condition(choose, f"{element()} = {value}")
        body += perhaps_under_a_condition(choose, f"C[i, k, j, {number}] = {element()} + A[j]")
        lines += ["                " + line for line in body]
    return parse("\n".join(lines))


@moved_inwards.at_least(0.02)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_outlive_iterations(data: st.DataObject) -> None:
    """Each run of an allocation begins with other values, so that a lost one shows."""
    func = program(lambda options: data.draw(st.sampled_from(list(options))))
    rng = np.random.default_rng(0)
    arrays = {
        "A": rng.integers(0, 8, 8).astype(np.float32),
        "N": rng.integers(0, 8, 8).astype(np.int32),
        "C": np.zeros((8, 4, 8, 3), np.float32),
    }
    expected = evaluate(func, arrays)["C"]
    body = lower(func, level(3))
    root = Block("root", (), (), (), body)
    lowered = replace(func, body=BlockRealize((), TRUE, root))
    np.testing.assert_array_equal(evaluate(lowered, arrays)["C"], expected)
    moved_inwards.count(not isinstance(body, Allocate))
