"""Loops over one thread axis become one."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from tests.unit.compiler.passes.threads.programs import program, refused


def test_loops_over_one_axis_must_agree() -> None:
    body = """
for bx in T.thread_binding(1, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        B[tx] = A[tx]
    for ty in T.thread_binding(16, thread="threadIdx.x"):
        B[32 + ty] = A[ty]
"""
    assert (
        "loops tx and ty are bound to threadIdx.x in one kernel, but have extents 32 and 16"
        in refused(body)
    )
    with pytest.raises(EvaluationError, match="32 and 16 iterations"):
        evaluate(program(body), {"A": np.zeros(64, np.float32)})
