"""`cache_inplace`: a copy that is read and written."""

from __future__ import annotations

from compiler import ops
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    IN_PLACE,
    computes_the_same,
    elementwise,
    refused,
    scheduled,
)

SHIFTED_IN_PLACE = """
@T.prim_func
def main(A: T.Buffer((17,), "float32")):
    for i in range(16):
        with T.sblock("A"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi + 1])
            T.writes(A[vi])
            if A[vi + 1] > T.float32(0):
                A[vi] = A[vi + 1]
"""


def test_a_copy_in_place_computes_the_same() -> None:
    sch = scheduled(IN_PLACE)
    fetch, put_back = sch.cache_inplace("A", 0, "local")
    computes_the_same(scheduled(IN_PLACE).func, sch.func)
    assert [b.name for b in (fetch, put_back)] == ["b1", "b2"]


def test_cache_inplace_refuses_what_is_not_changed_in_place() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "block B does not both read and write A", at='"B"'):
        sch.cache_inplace("B", 0, "local")
    with refused(sch, "block B has no read 1; it has 0: A", at='"B"'):
        sch.cache_inplace("B", 1, "local")
    sch = scheduled(IN_PLACE)
    with refused(sch, '"cloud" is not the name of a memory scope', at='"A"'):
        sch.cache_inplace("A", 0, "cloud")


def test_cache_inplace_refuses_what_it_may_not_write() -> None:
    sch = scheduled(SHIFTED_IN_PLACE)
    reason = "block A is not proved to write all of a box of A in each run"
    with refused(sch, reason, at='"A"'):
        sch.cache_inplace("A", 0, "local")


def test_cache_inplace_refuses_vectorized_loops() -> None:
    sch = scheduled(IN_PLACE.replace("range(16)", "T.vectorized(16)"))
    with refused(sch, "loop i is vectorized", at="for i"):
        sch.cache_inplace("A", 0, "local")


def test_a_sum_that_threads_share_is_not_copied_by_each() -> None:
    sch = Schedule(ops.matmul(4, 6, 5))
    block = sch.get_block("C")
    i, _, k = sch.get_loops(block)
    sch.bind(k, "threadIdx.x")
    sch.bind(i, "vthread.x")
    sch.decompose_reduction(block, i)
    with refused(
        sch, "iterations of loop k add to the same elements of C side by side", at="for k"
    ):
        sch.cache_inplace("C_update", 0, "global")
