"""Loops end before the first iteration that a condition on data excludes."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Conditional, For, If, IntImm
from compiler.ir.core.visit import walk
from compiler.passes.cpu.bound_loops import bound_loops
from compiler.script import parse

TEXT = """
@T.prim_func
def main(n: T.Buffer((3,), "int32"), A: T.Buffer((3, 12), "float32"), C: T.Buffer((3,), "float32")):
    for i in range(3):
        for k in {loop}:
            if {test}:
                C[i] = C[i] + T.if_then_else(k < n[i], A[i, k], T.float32(0))
"""


def bounded(test: str, loop: str = "range(12)") -> tuple[list[str], int]:
    """Return the extents of loops that are not constant, and the number of remaining tests."""
    nodes = list(walk(bound_loops(parse(TEXT.format(test=test, loop=loop)).body)))
    extents = [n.extent for n in nodes if isinstance(n, For) and not isinstance(n.extent, IntImm)]
    return [str(extent) for extent in extents], sum(isinstance(n, If | Conditional) for n in nodes)


def test_the_condition_becomes_the_end_of_the_loop() -> None:
    extents, num_tests = bounded("k - n[i] + 1 <= 0")
    assert (len(extents), num_tests) == (1, 0)


def test_other_conditions_in_the_body_stay() -> None:
    extents, num_tests = bounded("k * 2 < n[i]")
    assert (len(extents), num_tests) == (1, 1)


@pytest.mark.parametrize(
    ("test", "loop"),
    [
        ("k < i * 4", "range(12)"),  # a guard of loops
        ("n[i] < k", "range(12)"),  # holds for the last iterations
        ("n[k // 4] < n[i]", "range(12)"),
        ("k < n[i]", "T.unroll(12)"),
    ],
)
def test_other_loops_stay(test: str, loop: str) -> None:
    assert bounded(test, loop) == ([], 2)


def test_a_loop_that_changes_its_condition_stays() -> None:
    text = TEXT.replace("C[i] = C[i] + T.if_then_else(k < n[i], A[i, k], T.float32(0))", "n[i] = k")
    body = parse(text.format(test="k < n[i]", loop="range(12)").replace("A[i, k]", "A[i, 0]")).body
    assert bound_loops(body) == body
