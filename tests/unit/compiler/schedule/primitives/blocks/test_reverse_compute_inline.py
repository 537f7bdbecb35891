"""The requirements of `reverse_compute_inline`: each one refused, with the place marked."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    becomes,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_reverse_compute_inline_refuses_a_reduction_producer() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y is a reduction", at='"Y"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_a_block_without_a_producer() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "block B has no producer", at='"B"'):
        sch.reverse_compute_inline("B")


def test_reverse_compute_inline_refuses_another_reader() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, "B")
    C = te.compute((8,), lambda i: B[i] + 1.0, "C")
    D = te.compute((8,), lambda i: B[i] + 2.0, "D")
    sch = Schedule(te.create_prim_func([A, C, D]))
    with refused(sch, "block D reads B too", at='"D"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_a_window() -> None:
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda i: A[i] * 2.0, "B")
    C = te.compute((16,), lambda i: B[i] + B[i + 2], "C")
    sch = Schedule(te.create_prim_func([A, C]))
    with refused(sch, "block C does not read B once for each point", at='"C"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_an_output_in_between() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, "B")
    C = te.compute((8,), lambda i: B[i] + 1.0, "C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    with refused(sch, "block B is an output block, as it writes B: it must stay", at='"B"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_a_block_that_runs_in_part() -> None:
    sch = scheduled(HALF)
    with refused(sch, "block C is not proved to run for the whole", at='"C"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_an_output_that_is_touched_before() -> None:
    sch = scheduled(HALF.replace("range(8)", "range(16)").replace("C[vi]", "A[vi]"))
    with refused(sch, "block B touches A, which block C writes, before it", at='"B"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_a_producer_that_parallel_iterations_repeat() -> None:
    # Each iteration computes all of B, in a buffer of its own.
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in T.parallel(8):
        for j in range(8):
            with T.block("B"):
                vj = T.axis.spatial(8, j)
                B[vj] = A[vj] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + T.float32(1)
""")
    sch = Schedule(func)
    with refused(sch, "race", at="def main"):
        sch.reverse_compute_inline("C")


def test_a_copy_of_a_sum_takes_its_place() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 6, 8), "float32"), C: T.Buffer((6, 4), "float32")):
    B = T.sblock_alloc_buffer((4, 6))
    for i, j, k in T.grid(4, 6, 8):
        with T.sblock("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 0.0
            B[vi, vj] = B[vi, vj] + A[vi, vj, vk]
    for j, i in T.grid(6, 4):
        with T.sblock("C"):
            vj, vi = T.axis.remap("SS", [j, i])
            C[vj, vi] = B[vi, vj]
"""
    sch = scheduled(text)
    sch.reverse_compute_inline("C")
    merged = text[: text.index("    for j, i")].replace("B[vi, vj]", "C[vj, vi]")
    becomes(sch, merged.replace("    B = T.sblock_alloc_buffer((4, 6))\n", ""))
    scaled = scheduled(text.replace("= B[vi, vj]\n", "= B[vi, vj] * 2.0\n"))
    with refused(scaled, "block B is a reduction", at='"B"'):
        scaled.reverse_compute_inline("C")


def test_a_layout_that_splits_a_sum_of_iterators_is_inverted() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((4, 12), "float32")):
    B = T.sblock_alloc_buffer((6, 8))
    for i, j in T.grid(6, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(4, 12):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[(vi * 12 + vj) // 8, (vi * 12 + vj) % 8]
"""
    sch = scheduled(text)
    before = sch.func
    sch.reverse_compute_inline("C")
    arrays = {"A": np.arange(48, dtype="float32").reshape(6, 8), "C": np.zeros((4, 12), "float32")}
    np.testing.assert_array_equal(evaluate(sch.func, arrays)["C"], evaluate(before, arrays)["C"])
