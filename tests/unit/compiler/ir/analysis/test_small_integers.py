"""Buffers of integers from 0 to 127: proven from what is stored, never from parameters."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.small_integers import small_buffers
from compiler.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((16,), "uint8"), S: T.Buffer((16,), "int8"), C: T.Buffer((16,), "uint8")):
    B = T.alloc_buffer((16,), "uint8")
    D = T.alloc_buffer((16,), "uint8")
    for i in range(16):
        B[i] = {first}
    for i in range(16):
        D[i] = {second}
    for i in range(16):
        C[i] = D[i]
"""
CLAMPED = "T.min(A[i], T.uint8(127))"


def small(first: str, second: str) -> set[str]:
    func = parse(PROGRAM.format(first=first, second=second))
    return {buffer.name for buffer in small_buffers(func.body, func.buffers)}


@pytest.mark.parametrize(
    "second",
    [
        "B[i]",
        "B[15 - i]",
        "T.if_then_else(i < 3, T.uint8(0), B[i])",
        "T.Select(i < 3, B[i], T.uint8(127))",
        "T.max(B[i], T.uint8(3))",
        "T.min(B[i], A[i])",
        'T.Cast("uint8", T.Cast("int32", B[i]))',
    ],
)
def test_copies_and_choices_of_small_values_are_small(second: str) -> None:
    assert small(CLAMPED, second) == {"B", "D"}


@pytest.mark.parametrize(
    "first",
    [
        "A[i]",
        "T.min(A[i], T.uint8(128))",
        "T.max(A[i], T.uint8(127))",
        'T.Cast("uint8", T.min(S[i], T.int8(127)))',  # negative values wrap
        "T.if_then_else(i < 3, T.uint8(200), T.min(A[i], T.uint8(127)))",
        "T.min(A[i], T.uint8(127)) + T.uint8(1)",
    ],
)
def test_values_that_may_be_larger_are_not(first: str) -> None:
    assert small(first, "B[i]") == set()


def test_a_buffer_with_a_large_value_among_small_ones_is_not() -> None:
    assert small(CLAMPED, "A[i]") == {"B"}


def test_parameters_are_not_even_if_they_are_written() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "uint8"), C: T.Buffer((16,), "uint8")):
    for i in range(16):
        C[i] = T.min(A[i], T.uint8(127))
"""
    func = parse(text)
    assert small_buffers(func.body, func.buffers) == frozenset()
