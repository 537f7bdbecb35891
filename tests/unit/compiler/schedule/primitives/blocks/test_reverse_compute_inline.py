"""The requirements of `reverse_compute_inline`: each one refused, with the place marked."""

from __future__ import annotations

from compiler import te
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
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
    with refused(sch, "block B writes B, an output: it must stay", at='"B"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_a_block_that_runs_in_part() -> None:
    sch = scheduled(HALF)
    with refused(sch, "block C is not proved to run for the whole", at='"C"'):
        sch.reverse_compute_inline("C")


def test_reverse_compute_inline_refuses_an_output_that_is_touched_before() -> None:
    sch = scheduled(HALF.replace("range(8)", "range(16)").replace("C[vi]", "A[vi]"))
    with refused(sch, "block B touches A, which block C writes, before it", at='"B"'):
        sch.reverse_compute_inline("C")
