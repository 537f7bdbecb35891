"""`loop_partition`: a block for each part of a loop."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import BlockRealize, IntImm
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.primitives.programs import SHIFTED
from tests.unit.compiler.schedule.schedule_asserts import (
    SYMBOLIC,
    becomes,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

PARTS = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.sblock_alloc_buffer((16, 16))
    with T.sblock("B_i_common"):
        T.reads()
        T.writes()
        with T.sblock("B_i0_partition"):
            T.reads()
            T.writes()
            for i0, j in T.grid(5, 16):
                with T.sblock("B_i0"):
                    v_i = T.axis.spatial(5, i0)
                    v_j = T.axis.spatial(16, j)
                    T.reads(A[0:5, 0:16])
                    T.writes(B[0:5, 0:16])
                    B[v_i, v_j] = A[v_i, v_j] * T.float32(2)
        with T.sblock("B_i1_partition"):
            T.reads()
            T.writes()
            for i1, j in T.grid(11, 16):
                with T.sblock("B_i1"):
                    v_i = T.axis.spatial(11, i1)
                    v_j = T.axis.spatial(16, j)
                    T.reads(A[5:16, 0:16])
                    T.writes(B[5:16, 0:16])
                    B[v_i + 5, v_j] = A[v_i + 5, v_j] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(B[v_i, v_j])
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = B[v_i, v_j] + T.float32(1)
"""


def test_loop_partition_makes_a_block_of_each_part() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    assert len(sch.loop_partition(i, [5, None])) == 2
    becomes(sch, PARTS)
    computes_the_same(elementwise(), sch.func)


def test_loop_partition_keeps_regions_that_are_not_of_iterators_alone() -> None:
    sch = scheduled(SHIFTED)
    (i,) = sch.get_loops("C")
    sch.loop_partition(i, [3, None])
    assert isinstance(part := sch.get(sch.get_block("C_i1")), BlockRealize)
    assert [r.extent for region in part.block.reads for r in region.region] == [IntImm(1)]
    assert [r.extent for region in part.block.writes for r in region.region] == [IntImm(13)]
    computes_the_same(scheduled(SHIFTED).func, sch.func)


def test_loop_partition_of_a_fused_loop_keeps_the_ranges_of_iterators() -> None:
    sch = Schedule(elementwise())
    sch.loop_partition(sch.fuse(*sch.get_loops("B")), [100, None])
    assert isinstance(part := sch.get(sch.get_block("B_i_j_fused1")), BlockRealize)
    assert [i.extent for i in part.block.iter_vars] == [IntImm(16), IntImm(16)]
    computes_the_same(elementwise(), sch.func)


def test_loop_partition_keeps_a_last_part() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    assert len(sch.loop_partition(i, [3, 4])) == 3
    computes_the_same(elementwise(), sch.func)


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ([None, None, 2], "at most one factor may be None"),
        ([0, None], "factor 0 of loop i is not positive"),
        ([16], "don't make several parts of loop i, which has 16 iterations"),
        ([None], "don't make several parts"),
        ([], "don't make several parts"),
        ([8, 9], "don't make several parts"),
    ],
)
def test_loop_partition_refuses_factors_that_make_no_parts(
    factors: list[int | None], reason: str
) -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, reason, at="for i in range(16)"):
        sch.loop_partition(i, factors)


def test_loop_partition_refuses_a_reduction_loop() -> None:
    sch = Schedule(matmul_relu())
    _, _, k = sch.get_loops("Y")
    with refused(sch, "loop k binds the reduce iterator v_k of block Y", at='"Y"'):
        sch.loop_partition(k, [4, None])


def test_loop_partition_refuses_an_unknown_extent_and_annotations() -> None:
    sch = scheduled(SYMBOLIC)
    i, j = sch.get_loops("C")
    with refused(sch, "the extent of loop i is not a literal", at="for i in"):
        sch.loop_partition(i, [4, None])
    sch.annotate(j, "note", 1)
    with refused(sch, "loop j has annotations: note", at="for j in"):
        sch.loop_partition(j, [4, None])


ROW_OF_EACH_ITERATION = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.sblock_alloc_buffer((4, 8))
    for i in range(4):
        for j in T.parallel(8):
            for k in range(8):
                with T.sblock("B"):
                    v_i, v_k = T.axis.remap("SS", [i, k])
                    B[v_i, v_k] = A[v_i, v_k] * T.float32(2)
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = B[v_i, v_j]
"""


def test_loop_partition_refuses_parts_that_would_share_the_buffer_of_an_iteration() -> None:
    """Iterations of `j` have a `B` each while all of its uses are below one loop."""
    sch = scheduled(ROW_OF_EACH_ITERATION)
    i, _ = sch.get_loops("C")
    with refused(sch, "iterations of a parallel loop race", at="def main"):
        sch.loop_partition(i, [1, None])
