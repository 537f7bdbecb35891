"""The requirements of `decompose_reduction`: each one refused, with the place marked."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.refusals import (
    matmul_relu,
    refused,
    scheduled,
)


def test_decompose_reduction_refuses_a_block_that_is_none() -> None:
    sch = Schedule(matmul_relu())
    i, _ = sch.get_loops("C")
    with refused(sch, "block C is not a reduction with an init", at='"C"'):
        sch.decompose_reduction("C", i)


def test_decompose_reduction_refuses_a_loop_elsewhere() -> None:
    sch = Schedule(matmul_relu())
    i, _ = sch.get_loops("C")
    with refused(sch, "loop i is not around block Y", at="for i in range(16)"):
        sch.decompose_reduction("Y", i)


def test_decompose_reduction_refuses_a_reduction_loop_outside() -> None:
    sch = Schedule(matmul_relu())
    _, j, k = sch.get_loops("Y")
    sch.reorder(k, j)
    with refused(sch, "loop k, outside loop j, binds a reduction iterator", at="for k in"):
        sch.decompose_reduction("Y", j)


def test_decompose_reduction_refuses_a_loop_of_both_kinds() -> None:
    sch = Schedule(matmul_relu())
    _, j, k = sch.get_loops("Y")
    jk = sch.fuse(j, k)
    with refused(sch, "loop j_k_fused binds both spatial and reduction iterators", at='"Y"'):
        sch.decompose_reduction("Y", jk)


def test_decompose_reduction_refuses_repeated_runs() -> None:
    sch = scheduled("""
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
""")
    _, again, k = sch.get_loops("C")
    with refused(sch, "the loops do not tell the points of block C apart", at='"C"'):
        sch.decompose_reduction("C", again)
    sch.decompose_reduction("C", k)


def test_decompose_reduction_refuses_a_predicate_on_its_start() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k > 1)
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
""")
    _, k = sch.get_loops("C")
    with refused(sch, "may leave out the start of its reduction", at='"C"'):
        sch.decompose_reduction("C", k)
