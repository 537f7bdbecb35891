"""Which blocks are running sums."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.analysis.running_sum import running_sum
from compiler.ir.core.nodes import Block
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.script import parse


def is_running_sum(func: PrimFunc) -> bool:
    return any(running_sum(n) is not None for n in walk(func.body) if isinstance(n, Block))


def scan(value: str) -> PrimFunc:
    return parse(
        f"""
@T.prim_func
def main(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(1, 9):
        with T.block("B"):
            vi = T.axis.scan((1, 9), i)
            B[vi] = {value}
"""
    )


def test_cumulative_sums_are() -> None:
    assert is_running_sum(ops.cumsum(3, 5, axis=0))
    assert is_running_sum(ops.cumsum(7, dtype="bfloat16"))
    assert not is_running_sum(ops.sum(7))


@pytest.mark.parametrize(
    ("value", "is_sum"),
    [
        ("B[vi - 1] + A[vi]", True),
        ("A[vi] + B[vi - 1]", True),
        ("B[vi - 1] * 0.5 + A[vi]", False),
        ("B[vi - 1] * A[vi]", False),
        ("A[vi - 1] + A[vi]", False),
    ],
)
def test_only_additions_to_an_earlier_element_are(value: str, is_sum: bool) -> None:
    assert is_running_sum(scan(value)) == is_sum
