"""Buffers are allocated where iterations use them."""

from __future__ import annotations

from compiler.driver import lower
from compiler.ir.core.nodes import (
    Allocate,
    For,
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
