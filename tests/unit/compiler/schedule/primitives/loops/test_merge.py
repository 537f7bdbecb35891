"""`merge`: several nests become one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.ir.core.nodes import For
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.primitives.programs import SHIFTED
from tests.unit.compiler.schedule.schedule_asserts import (
    INPUT_OVERWRITTEN,
    becomes,
    elementwise,
    refused,
    scheduled,
)

MERGED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.sblock_alloc_buffer((16, 16))
    for i_m, j_m in T.grid(16, 16):
        with T.sblock("B"):
            v_i, v_j = T.axis.remap("SS", [i_m, j_m])
            T.reads(A[v_i, v_j])
            T.writes(B[v_i, v_j])
            B[v_i, v_j] = A[v_i, v_j] * T.float32(2)
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i_m, j_m])
            T.reads(B[v_i, v_j])
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = B[v_i, v_j] + T.float32(1)
"""


def test_merge_runs_bodies_in_one_nest() -> None:
    sch = Schedule(elementwise())
    (_, inner), (_, other) = sch.get_loops("B"), sch.get_loops("C")
    loop = sch.merge(inner, other)
    assert isinstance(merged := sch.get(loop), For)
    assert merged.var.name == "j_m"
    becomes(sch, MERGED)
    with refused(sch, "is dead: merge consumed it", at="def main"):
        sch.parallel(inner)


@pytest.mark.parametrize(
    ("loops", "reason"),
    [
        (lambda b, c: [b[0]], "expected at least two different loops"),
        (lambda b, c: [b[0], b[0]], "expected at least two different loops"),
        (lambda b, c: [b[0], b[1]], "the loops are not in different nests of one sequence"),
        (lambda b, c: [b[0], c[1]], "loops i and j are at different depths"),
        (lambda b, c: [c[1], b[1]], "shares B with block B, which would come after it"),
    ],
)
def test_merge_refuses_what_is_no_pair_of_nests(
    loops: Callable[[list[object], list[object]], list[object]], reason: str
) -> None:
    sch = Schedule(elementwise())
    given = loops(list(sch.get_loops("B")), list(sch.get_loops("C")))
    with refused(sch, reason, at=""):
        sch.merge(*given)  # type: ignore[arg-type]


def test_merge_refuses_different_extents() -> None:
    sch = Schedule(elementwise())
    (i, _), (other, _) = sch.get_loops("B"), sch.get_loops("C")
    i_0, _ = sch.split(i, [None, 4])
    with refused(sch, "loops i_0 and i have different extents: 4 and 16", at="for i in"):
        sch.merge(i_0, other)


def test_merge_refuses_loops_that_are_annotated() -> None:
    sch = Schedule(elementwise())
    (i, _), (other, _) = sch.get_loops("B"), sch.get_loops("C")
    sch.annotate(i, "note", 1)
    with refused(sch, "loop i has annotations: note", at="for i in"):
        sch.merge(i, other)


def test_merge_refuses_iterations_that_need_others() -> None:
    sch = scheduled(SHIFTED)
    (i,), (other,) = sch.get_loops("B"), sch.get_loops("C")
    with refused(sch, "blocks B and C share B across iterations", at='"C"'):
        sch.merge(i, other)


def test_merge_refuses_to_pass_what_it_depends_on() -> None:
    sch = scheduled(INPUT_OVERWRITTEN)
    (i,), (other,) = sch.get_loops("B"), sch.get_loops("C")
    with refused(sch, "block B shares A with block clear, which stands between", at='"clear"'):
        sch.merge(i, other)
