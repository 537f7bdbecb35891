"""What tests of refused primitives share: programs, and the check of an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    BlockRealize,
    For,
    Stmt,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import transform
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import blocks
from compiler.script.parser import parse


@contextmanager
def refused(schedule: Schedule, reason: str, *, at: str) -> Iterator[None]:
    """Expect one ScheduleError that gives `reason`, marks the line `at`, and changes nothing."""
    before = schedule.func
    with pytest.raises(ScheduleError) as caught:
        yield
    assert schedule.func is before
    assert reason in caught.value.reason
    first, *program = str(caught.value).splitlines()
    assert first == f"{caught.value.primitive}: {caught.value.reason}"
    marked = [line for line in program if line.startswith(">")]
    assert len(marked) == 1, program
    assert at in marked[0]


def becomes(schedule: Schedule, text: str) -> None:
    """Check that a schedule's program is the one of a text, and computes what it did before."""
    expected = parse(text)
    assert structural_equal(schedule.func, expected), schedule.func.script()
    names = [realize.block.name for realize in blocks(expected)]
    assert [realize.block.name for realize in blocks(schedule.func)] == names


def computes_the_same(before: PrimFunc, after: PrimFunc, rtol: float = 0.0) -> None:
    """Check that two programs compute the same, on whole numbers."""
    rng = np.random.default_rng(0)
    inputs = {p.name: rng.integers(-3, 4, static_shape(p)).astype(p.dtype) for p in before.buffers}
    expected = evaluate(before, inputs)
    for name, value in evaluate(after, inputs).items():
        np.testing.assert_allclose(value, expected[name], rtol=rtol, err_msg=name)


def scheduled(text: str) -> Schedule:
    """Return a schedule of a script."""
    return Schedule(parse(text))


def racing(text: str, loop: str) -> Schedule:
    """Return a schedule of a script with one loop made parallel, which the verifier refuses."""

    def make_parallel(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, For) and stmt.var.name == loop:
            return replace(stmt, kind="parallel")
        return None

    func = parse(text)
    body = transform(func.body, on_stmt=make_parallel)
    assert isinstance(body, BlockRealize)
    return Schedule(replace(func, body=body))


def matmul_relu(n: int = 16) -> PrimFunc:
    """Return the relu of a matrix product, blocks Y and C."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    r = te.reduce_axis((0, n), "k")
    Y = te.compute((n, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((n, n), lambda i, j: te.max(Y[i, j], 0.0), "C")
    return te.create_prim_func([A, B, C], "main")


def elementwise(n: int = 16) -> PrimFunc:
    """Return a chain of two elementwise blocks, B and C."""
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((n, n), lambda i, j: B[i, j] + 1.0, "C")
    return te.create_prim_func([A, C], "main")


ROLLING = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(15):
        with T.sblock("C"):
            vi = T.axis.spatial(15, i)
            T.reads(C[vi], A[vi])
            T.writes(C[vi + 1])
            C[vi + 1] = C[vi] + A[vi]
"""
"""Each run reads what the one before wrote, though its iterator claims to be spatial."""

PREFIX_SUM = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    S = T.sblock_alloc_buffer((1,))
    for i in range(16):
        for j in range(1):
            with T.sblock("S"):
                vj = T.axis.spatial(1, j)
                vi = T.axis.reduce(16, i)
                T.reads(A[vi])
                T.writes(S[vj])
                with T.init():
                    S[vj] = T.float32(0)
                S[vj] = S[vj] + A[vi]
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(S[0])
            T.writes(C[vi])
            C[vi] = S[0]
"""
"""A block reads the partial results of a reduction: their order is the meaning."""

SHARED_LOOP = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[0])
            T.writes(C[vi])
            C[vi] = B[0]
"""
"""Each iteration reads what the first one wrote."""

LOOSE_STORE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
        C[i] = A[i] + T.float32(1)
"""
"""What a store outside of any block touches is in no block's account."""

IN_PLACE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("A"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(A[vi])
            A[vi] = A[vi] * T.float32(2)
"""

REPEATED_SUM = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, again, k in T.grid(4, 3, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""
"""The loop `again` runs the reduction several times."""

DIAGONAL_SUM = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(4, i)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""
"""Each element of the sum takes one step, and only the first one starts anew."""

TWO_WRITERS = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("B2"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(3)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
"""

INPUT_OVERWRITTEN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("clear"):
            vi = T.axis.spatial(16, i)
            T.reads()
            T.writes(A[vi])
            A[vi] = T.float32(0)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
"""

HALF = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
"""
"""Block C runs for half of its iterator's range."""

SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.match_buffer(c, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj] * T.float32(2)
"""

TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(i + 1):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
"""
"""The extent of the inner loop varies."""
