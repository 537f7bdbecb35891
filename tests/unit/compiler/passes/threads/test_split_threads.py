"""Loops over threads end where threads wait."""

from __future__ import annotations

from compiler.driver import lower
from compiler.ir.core.nodes import (
    For,
)
from compiler.ir.core.visit import walk_stmts
from tests.targets import level
from tests.unit.compiler.passes.threads.programs import TRANSPOSE, refused


def test_loops_over_threads_end_where_threads_wait() -> None:
    stmt = lower(TRANSPOSE, level(3))
    loops = [node.var.name for node in walk_stmts(stmt) if isinstance(node, For)]
    assert loops == ["bx", "by", "tx", "i", "tx", "i"]


def test_local_memory_that_carries_values_between_threads_is_refused() -> None:
    body = """
kept = T.sblock_alloc_buffer((64,), scope="local")
for bx in T.thread_binding(1, thread="blockIdx.x"):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        kept[tx] = A[tx]
    for ty in T.thread_binding(64, thread="threadIdx.x"):
        B[ty] = kept[63 - ty]
"""
    assert "kept is in local memory, of which each thread has its own" in refused(body)
