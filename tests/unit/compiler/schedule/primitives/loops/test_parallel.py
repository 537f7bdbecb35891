"""Iterations that run at the same time: requirements."""

from __future__ import annotations

import pytest

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    PREFIX_SUM,
    ROLLING,
    SHARED_LOOP,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_concurrency_refuses_a_reduction_loop(primitive: str) -> None:
    sch = Schedule(matmul_relu())
    _, _, k = sch.get_loops("Y")
    with refused(sch, "loop k binds the reduce iterator v_k of block Y", at='"Y"'):
        getattr(sch, primitive)(k)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
@pytest.mark.parametrize("text", [ROLLING, SHARED_LOOP])
def test_concurrency_refuses_iterations_that_share_elements(primitive: str, text: str) -> None:
    sch = scheduled(text)
    (i,) = sch.get_loops("C")
    with refused(sch, "are not proved to touch different elements of", at="T.sblock("):
        getattr(sch, primitive)(i)


def test_parallel_refuses_a_loop_inside_vectors() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.vectorize(i)
    with refused(sch, "loop i is vectorized", at="for i in T.vectorized(16)"):
        sch.parallel(j)


def test_parallel_accepts_a_loop_whose_iterations_have_a_buffer_of_their_own() -> None:
    sch = Schedule(matmul_relu())
    i, _ = sch.get_loops("C")
    sch.compute_at("Y", i)
    sch.parallel(i)
    assert sch.get(i).kind == "parallel"  # type: ignore[union-attr]


def test_parallel_refuses_partial_results() -> None:
    sch = scheduled(PREFIX_SUM)
    (i,) = sch.get_loops("C")
    with refused(sch, "loop i binds the reduce iterator vi of block S", at='"S"'):
        sch.parallel(i)


RECURRENCE = """
@T.prim_func
def main(X: T.Buffer((8, 16), "float32"), S: T.Buffer((9, 16), "float32")):
    for i in range(16):
        with T.sblock("first"):
            vi = T.axis.spatial(16, i)
            S[0, vi] = T.float32(0)
    for t, i in T.grid(8, 16):
        with T.sblock("update"):
            vt = T.axis.scan(8, t)
            vi = T.axis.spatial(16, i)
            S[vt + 1, vi] = S[vt, SHIFTED] + X[vt, vi]
"""


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_a_recurrence_runs_its_spatial_loops_at_once(primitive: str) -> None:
    schedule = scheduled(RECURRENCE.replace("SHIFTED", "vi"))
    time, space = schedule.get_loops("update")
    with refused(schedule, "binds the scan iterator vt", at='T.sblock("update")'):
        getattr(schedule, primitive)(time)
    getattr(schedule, primitive)(space)
    computes_the_same(scheduled(RECURRENCE.replace("SHIFTED", "vi")).func, schedule.func)
    schedule = scheduled(RECURRENCE.replace("SHIFTED", "15 - vi"))
    with refused(schedule, "not proved to touch different elements of S", at='T.sblock("update")'):
        getattr(schedule, primitive)(schedule.get_loops("update")[1])
