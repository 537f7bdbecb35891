"""Barriers between threads of a block."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.script.error import ScriptError
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation
from tests.unit.compiler.passes.threads.programs import program, refused


def test_a_barrier_that_not_all_threads_reach_is_refused() -> None:
    body = """
for tx in T.thread_binding(64, thread="threadIdx.x"):
    if tx < 32:
        B[tx] = A[tx]
        T.tvm_storage_sync("shared")
        B[tx] = B[tx] + 1.0
"""
    assert "a barrier stands under a condition that may differ from thread to thread" in refused(
        body
    )
    with pytest.raises(EvaluationError, match="32 of the 64 threads of a block reach a barrier"):
        evaluate(program(body), {"A": np.zeros(64, np.float32)})


def test_shared_memory_that_needs_a_barrier_where_there_can_be_none_is_refused() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(64, thread="threadIdx.x"):
    if tx < 32:
        S[tx] = A[tx]
        B[tx] = S[31 - tx]
"""
    with pytest.raises(ScriptError, match="threads race"):
        program(body)


def test_a_condition_that_is_the_same_for_all_threads_may_hold_a_barrier() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(64, thread="threadIdx.x"):
    for k in range(4):
        if k % 2 == 0:
            S[tx] = A[tx] + T.Cast("float32", k)
            T.tvm_storage_sync("shared")
            B[tx] = S[63 - tx]
"""
    check_against_evaluation(program(body))
