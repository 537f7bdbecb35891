"""`vectorize`: requirements."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    SHARED_LOOP,
    elementwise,
    refused,
    scheduled,
)


def test_vectorize_refuses_a_buffer_that_iterations_share() -> None:
    text = SHARED_LOOP.replace("B[vi] =", "B[0] =").replace("T.writes(B[vi])", "T.writes(B[0])")
    sch = scheduled(text)
    (i,) = sch.get_loops("C")
    with refused(sch, "different elements of B", at='T.sblock("B")'):
        sch.vectorize(i)


def test_vectorize_refuses_nested_vectors() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.vectorize(j)
    with refused(sch, "loop j inside it is vectorized", at="for j in T.vectorized(16)"):
        sch.vectorize(i)
