"""Barriers between threads of a block."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.core.nodes import For, Stmt
from compiler.ir.core.visit import statements_in, walk_stmts
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.passes.common.thread_loops import is_barrier
from compiler.script.error import ScriptError
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation
from tests.unit.compiler.passes.threads.programs import (
    program,
    refused,
    tiled_matmul,
    with_barriers,
)


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


def barriers(stmt: Stmt) -> list[tuple[str, ...]]:
    """Return the loops around each barrier."""
    places: list[tuple[str, ...]] = []

    def visit(node: Stmt, path: tuple[str, ...]) -> None:
        if is_barrier(node):
            places.append(path)
        if isinstance(node, For):
            path = (*path, node.var.name)
        for child in statements_in(node):
            visit(child, path)

    visit(stmt, ())
    return places


def test_a_step_of_a_tiled_product_has_two_barriers() -> None:
    stmt = with_barriers(tiled_matmul(30))
    step = ("i_0", "j_0", "i_1_j_1_fused", "k_0")
    assert barriers(stmt) == [step, step]
    copies = [n for n in walk_stmts(stmt) if isinstance(n, For) and n.kind == "vectorized"]
    assert len(copies) == 3


def test_two_versions_of_a_tile_need_one_barrier_a_step() -> None:
    stmt = with_barriers(tiled_matmul(32, stages=2))
    kernel = ("i_0", "j_0", "i_1_j_1_fused")
    assert barriers(stmt) == [kernel, (*kernel, "k_0")]


def test_a_vectorized_loop_that_needs_a_barrier_is_serial() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(16, thread="threadIdx.x"):
    for v in T.vectorized(4):
        with T.sblock("copy"):
            vi = T.axis.spatial(64, v * 16 + tx)
            S[vi] = A[vi]
        with T.sblock("use"):
            vi = T.axis.spatial(64, v * 16 + tx)
            B[vi] = S[vi // 16 * 16 + 15 - vi % 16]
"""
    func = program(body)
    stmt = with_barriers(func)
    assert barriers(stmt) == [("tx", "v")]
    assert {n.kind for n in walk_stmts(stmt) if isinstance(n, For)} == {"thread_binding", "serial"}
    check_against_evaluation(func)


def test_a_barrier_that_a_condition_may_skip_separates_nothing() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(64, thread="threadIdx.x"):
    with T.sblock("copy"):
        vi = T.axis.spatial(64, tx)
        S[vi] = A[vi]
    if A[0] < 0.0:
        T.tvm_storage_sync("shared")
    with T.sblock("use"):
        vi = T.axis.spatial(64, tx)
        B[vi] = S[63 - vi]
"""
    func = program(body)
    assert barriers(with_barriers(func)) == [("tx",), ("tx",)]
    check_against_evaluation(func)


def test_a_name_has_another_value_in_each_iteration() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(16, thread="threadIdx.x"):
    for k in range(16):
        first = {first}
        with T.sblock("copy"):
            vi = T.axis.spatial(64, first + tx)
            S[vi] = A[vi] + T.Cast("float32", k)
        with T.sblock("use"):
            vi = T.axis.spatial(64, first + tx)
            B[vi] = S[vi]
"""
    shifted, disjoint = (program(body.format(first=first)) for first in ("k * 3", "k % 4 * 16"))
    assert barriers(with_barriers(shifted)) == [("tx", "k")]
    assert barriers(with_barriers(disjoint)) == []
    check_against_evaluation(shifted)


def test_a_condition_separates_the_threads_of_two_accesses() -> None:
    body = """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(64, thread="threadIdx.x"):
    if tx < 1:
        S[tx // 2] = A[tx]
    if 32 <= tx:
        B[tx] = S[tx]
"""
    assert barriers(with_barriers(program(body))) == []
