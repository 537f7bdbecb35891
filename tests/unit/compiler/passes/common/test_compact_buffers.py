"""Buffers are allocated where iterations use them."""

from __future__ import annotations

from compiler.driver import lower
from compiler.ir.core.nodes import (
    Allocate,
    For,
    static_shape,
)
from compiler.ir.core.visit import walk_stmts
from compiler.script.parser import parse
from tests.targets import level

BRANCHES = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    t = T.alloc_buffer((8,))
    for i in T.parallel(64):
        if i < 32:
            for j in range(8):
                t[j] = A[i]
        else:
            for j in range(8):
                t[j] = A[i] + T.float32(1)
        B[i] = t[0] + t[7] + t[i % 8]
"""


def test_what_iterations_use_at_once_is_allocated_in_their_loop() -> None:
    """Two branches together write all that is read, which only the verifier sees."""
    (parallel,) = (
        stmt
        for stmt in walk_stmts(lower(parse(BRANCHES), level(3, num_cores=2)))
        if isinstance(stmt, For) and stmt.kind == "parallel"
    )
    assert any(isinstance(stmt, Allocate) for stmt in walk_stmts(parallel.body))


UNROLLED = """
@T.prim_func
def main(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32")):
    t = T.alloc_buffer((5, 20))
    for i, x in T.grid(3, 8):
        for u in T.unroll(4):
            if i * 4 + u < 11:
                t[(i * 32 + u * 8 + x) // 20, (i * 32 + u * 8 + x) % 20] = A[i * 32 + u * 8 + x]
            if (i * 4 + u) * 8 + x < 88:
                B[i * 32 + u * 8 + x] = t[(i * 32 + u * 8 + x) // 20, (i * 32 + u * 8 + x) % 20]
"""


def test_irregular_elements_of_unrolled_iterations_are_allocated_in_each() -> None:
    """The condition of the load implies that of the store, so each iteration writes first."""
    lowered = lower(parse(UNROLLED), level(3))
    allocated = [stmt.buffer for stmt in walk_stmts(lowered) if isinstance(stmt, Allocate)]
    assert {static_shape(buffer) for buffer in allocated} == {(1, 1)}


UNIT_LOOPS = """
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 6), "float32")):
    t = T.alloc_buffer((8, 6))
    for n in range(1):
        for i in range(8):
            for j in range(6):
                t[n * 8 + i, j] = A[n * 8 + i, j] * T.float32(2)
            for j in range(6):
                B[i, j] = t[i, 5 - j] + t[i, j]
"""


def test_a_loop_of_one_iteration_moves_no_corner() -> None:
    """The stores name it and the loads do not, and both mean the same row."""
    lowered = lower(parse(UNIT_LOOPS), level(3))
    (buffer,) = [stmt.buffer for stmt in walk_stmts(lowered) if isinstance(stmt, Allocate)]
    assert static_shape(buffer) == (1, 6)
