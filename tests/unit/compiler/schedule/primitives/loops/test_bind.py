"""`bind`: requirements."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    elementwise,
    matmul_relu,
    refused,
)


def test_bind_refuses_an_unknown_thread_axis() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, 'there is no thread axis "threadIdx.w"', at="for i in range(16)"):
        sch.bind(i, "threadIdx.w")


def test_bind_refuses_an_axis_that_is_taken() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    with refused(sch, "loop i is already bound to blockIdx.x", at="for i in T.thread_binding"):
        sch.bind(j, "blockIdx.x")


def test_bind_refuses_a_reduction_loop() -> None:
    sch = Schedule(matmul_relu())
    _, _, k = sch.get_loops("Y")
    for thread in ("blockIdx.x", "vthread"):
        with refused(sch, "loop k binds the reduce iterator v_k of block Y", at='"Y"'):
            sch.bind(k, thread)
