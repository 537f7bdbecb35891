"""`reorder`: requirements."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    REPEATED_SUM,
    ROLLING,
    SHARED_LOOP,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_reorder_refuses_a_loop_named_twice() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    with refused(sch, "a loop is given twice: i, j, i", at="def main"):
        sch.reorder(i, j, i)


def test_reorder_refuses_loops_of_different_nests() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    _, j = sch.get_loops("C")
    with refused(sch, "is not in one chain with the others", at="for"):
        sch.reorder(j, i)


def test_reorder_refuses_a_loop_that_holds_more_than_the_next() -> None:
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    sch.reverse_compute_at("C", j)
    with refused(sch, "loop j holds more than the next loop", at="for j in range(16)"):
        sch.reorder(k, i)


def test_reorder_refuses_runs_that_depend_on_each_other() -> None:
    sch = scheduled(ROLLING)
    (i,) = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [3, 5])
    with refused(sch, "touches C at more than one element", at='T.sblock("C")'):
        sch.reorder(i_1, i_0)


def test_reorder_refuses_blocks_that_share_a_buffer_across_iterations() -> None:
    sch = scheduled(SHARED_LOOP)
    (i,) = sch.get_loops("B")
    i_0, i_1 = sch.split(i, [4, 4])
    with refused(sch, "blocks B, C share B across iterations", at='T.sblock("B")'):
        sch.reorder(i_1, i_0)


def test_reorder_refuses_a_reduction_that_is_not_commutative() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = A[vi, vk] - C[vi]
""")
    i, k = sch.get_loops("C")
    sch.reorder(k, i)
    k_0, k_1 = sch.split(k, [2, 4])
    with refused(sch, "the reduction of block C is not known to be commutative", at='"C"'):
        sch.reorder(k_1, k_0)


def test_reorder_refuses_a_reduction_that_is_run_several_times() -> None:
    sch = scheduled(REPEATED_SUM)
    _, again, k = sch.get_loops("C")
    with refused(sch, "the loops do not determine the points of block C", at='"C"'):
        sch.reorder(k, again)


def test_reorder_refuses_a_reduction_that_starts_at_its_end() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, 7 - k)
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
""")
    i, k = sch.get_loops("C")
    with refused(sch, "does not start at its first iteration", at='"C"'):
        sch.reorder(k, i)


def test_reorder_refuses_a_loop_of_spatial_and_reduction_iterators() -> None:
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    jk = sch.fuse(j, k)
    with refused(sch, "loop j_k_fused binds both spatial and reduction", at='"Y"'):
        sch.reorder(jk, i)
