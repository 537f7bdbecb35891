"""The requirements of `decompose_reduction`: each one refused, with the place marked."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import BlockRealize
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    DIAGONAL_SUM,
    REPEATED_SUM,
    computes_the_same,
    matmul_relu,
    refused,
    scheduled,
)


def test_decompose_reduction_refuses_a_block_that_is_none() -> None:
    sch = Schedule(matmul_relu())
    i, _ = sch.get_loops("C")
    with refused(sch, "block C is not a reduction with an init", at='"C"'):
        sch.decompose_reduction("C", i)


OUTSIDE = """
@T.prim_func
def main(A: T.Buffer((8, 4)), C: T.Buffer((4,))):
    for k in range(8):
        with T.sblock("outer"):
            T.reads(A[k, 0:4])
            T.writes(C[0:4])
            for j in range(4):
                with T.sblock("C"):
                    vk, vj = T.axis.remap("RS", [k, j])
                    with T.init():
                        C[vj] = T.float32(0)
                    C[vj] = C[vj] + A[vk, vj]
"""


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


def test_decompose_reduction_of_a_loop_of_both_kinds_runs_it_twice() -> None:
    for order in ((0, 1), (1, 0)):
        sch = Schedule(matmul_relu(4))
        loops = sch.get_loops("Y")[1:]
        sch.reorder(*(loops[n] for n in order))
        both = sch.fuse(*(loops[n] for n in order))
        sch.decompose_reduction("Y", both)
        verify(sch.func)
        computes_the_same(matmul_relu(4), sch.func)


def test_decompose_reduction_refuses_a_loop_of_both_kinds_in_the_predicate() -> None:
    sch = Schedule(matmul_relu())
    _, j, k = sch.get_loops("Y")
    jk = sch.fuse(j, k)
    _, inner = sch.split(jk, [None, 100])
    outer = sch.get_loops("Y")[1]
    with refused(sch, "binds both spatial and reduction iterators", at='"Y"'):
        sch.decompose_reduction("Y", outer)
    assert sch.get(inner)


@pytest.mark.parametrize("depth", range(4))
def test_decompose_reduction_of_tiles(depth: int) -> None:
    sch = Schedule(matmul_relu())
    sizes = zip(sch.get_loops("Y"), (5, 4, 3), strict=True)
    pairs = [sch.split(loop, [None, size]) for loop, size in sizes]
    (i_0, i_1), (j_0, j_1), (k_0, k_1) = pairs
    sch.reorder(i_0, j_0, k_0, i_1, j_1, k_1)
    block = sch.get_block("Y")
    sch.annotate(block, "note", 1)
    if depth == 3:
        with refused(sch, "loop k_0, outside loop i_1, binds a reduction iterator", at="for k_0"):
            sch.decompose_reduction(block, i_1)
        return
    init = sch.decompose_reduction(block, [i_0, j_0, k_0][depth])
    verify(sch.func)
    computes_the_same(matmul_relu(), sch.func)
    for handle, name in ((init, "Y_init"), (block, "Y_update")):
        realize = sch.get(handle)
        assert isinstance(realize, BlockRealize)
        assert (realize.block.name, realize.block.annotations) == (name, (("note", 1),))


def test_decompose_reduction_of_a_tuple() -> None:
    text = """
@T.prim_func
def main(
    A: T.Buffer((4, 8), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")
):
    for i, k in T.grid(4, 8):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32(1)
            v_s: T.let = S[vi] + A[vi, vk]
            v_q: T.let = Q[vi] * T.float32(2) + S[vi]
            S[vi] = v_s
            Q[vi] = v_q
"""
    sch = scheduled(text)
    sch.decompose_reduction("S", sch.get_loops("S")[1])
    verify(sch.func)
    computes_the_same(parse(text), sch.func)


def test_decompose_reduction_refuses_repeated_runs() -> None:
    sch = scheduled(REPEATED_SUM)
    _, again, k = sch.get_loops("C")
    with refused(sch, "the loops do not determine the points of block C", at='"C"'):
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


REDUCTION = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    S = T.sblock_alloc_buffer((4,))
    for i in range(4):
        for j in range(1):
            with T.sblock("S"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0])
                T.writes(S[vi])
                S[vi] = A[vi, 0]
        for k in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, k)
                T.reads(A[vi, vk], S[vi])
                T.writes(C[vi])
                with T.init():
                    C[vi] = S[vi]
                C[vi] = C[vi] + A[vi, vk]
"""


def test_decompose_reduction_refuses_an_init_of_what_is_written_under_the_loop() -> None:
    sch = scheduled(REDUCTION)
    i, k = sch.get_loops("C")
    with refused(sch, "block S writes S under loop i, which the init of block C reads", at='"S"'):
        sch.decompose_reduction("C", i)
    sch.decompose_reduction("C", k)


def test_decompose_reduction_refuses_a_reduction_that_starts_at_its_end() -> None:
    sch = scheduled(REDUCTION.replace("T.axis.reduce(8, k)", "T.axis.reduce(8, 7 - k)"))
    _, k = sch.get_loops("C")
    with refused(sch, "over vk does not start at its first iteration", at='"C"'):
        sch.decompose_reduction("C", k)


def test_decompose_reduction_refuses_a_condition_around() -> None:
    lines = REDUCTION.split("        for k in range(8):\n")
    body = lines[1].replace("\n    ", "\n        ")
    text = (
        f"{lines[0]}        for k in range(8):\n            if k < 9:\n    {body}".rstrip() + "\n"
    )
    sch = scheduled(text)
    _, k = sch.get_loops("C")
    with refused(sch, "block C is under a condition", at="if k < 9"):
        sch.decompose_reduction("C", k)


def test_decompose_reduction_refuses_an_init_that_would_spoil_what_is_read() -> None:
    sch = scheduled("""
@T.prim_func
def main(
    A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32")
):
    for i in range(4):
        with T.sblock("D"):
            vi = T.axis.spatial(4, i)
            T.reads(C[vi])
            T.writes(D[vi])
            D[vi] = C[vi]
        for k in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, k)
                T.reads(A[vi, vk])
                T.writes(C[vi])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
""")
    i, k = sch.get_loops("C")
    with refused(sch, "block D may touch C under loop i before block C has computed it", at='"D"'):
        sch.decompose_reduction("C", i)
    sch.decompose_reduction("C", k)


def test_decompose_reduction_refuses_a_reduction_that_goes_on_outside_the_block_around() -> None:
    sch = scheduled(OUTSIDE)
    with refused(sch, "k, from outside the block around, moves a reduction iterator", at='"C"'):
        sch.decompose_reduction("C", sch.get_loops("C")[0])


def test_decompose_reduction_refuses_a_start_that_only_one_element_meets() -> None:
    schedule = scheduled(DIAGONAL_SUM)
    with refused(schedule, "binds both spatial and reduction iterators", at='"C"'):
        schedule.decompose_reduction("C", schedule.get_loops("C")[0])
