"""Unit loops, merged and cut loops, iterators in another order, reductions across threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.ir.core.nodes import BlockRealize, For, IntImm
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    INPUT_OVERWRITTEN,
    SYMBOLIC,
    becomes,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""


def test_add_unit_loop_stands_around_a_loop_or_a_block() -> None:
    sch = scheduled(ROWS)
    i, _ = sch.get_loops("C")
    sch.add_unit_loop(i)
    sch.add_unit_loop("C")
    becomes(sch, ROWS.replace("i, k in T.grid(4, 8)", "u, i, k, u_1 in T.grid(1, 4, 8, 1)"))


def test_add_unit_loop_refuses_the_root() -> None:
    sch = scheduled(ROWS)
    with refused(sch, '"root" is the root block', at="def main"):
        sch.add_unit_loop("root")


def test_reorder_block_iter_var_reorders_iterators() -> None:
    sch = scheduled(ROWS)
    sch.reorder_block_iter_var("C", [1, 0])
    becomes(
        sch,
        ROWS.replace('vi, vk = T.axis.remap("SR", [i, k])', 'vk, vi = T.axis.remap("RS", [k, i])'),
    )


@pytest.mark.parametrize("order", [[], [0], [0, 0], [0, 1, 2], [0, 2], [-1, 0]])
def test_reorder_block_iter_var_refuses_what_is_no_order(order: list[int]) -> None:
    sch = scheduled(ROWS)
    with refused(sch, f"{order} is not an order of the 2 iterators of block C", at='"C"'):
        sch.reorder_block_iter_var("C", order)


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


Loops = Callable[[Schedule], list[object]]


@pytest.mark.parametrize(
    ("loops", "reason"),
    [
        (lambda b, c: [b[0]], "at least two different loops are merged"),
        (lambda b, c: [b[0], b[0]], "at least two different loops are merged"),
        (lambda b, c: [b[0], b[1]], "the loops are not in different nests of one sequence"),
        (lambda b, c: [b[0], c[1]], "loops i and j do not lie equally deep"),
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


SHIFTED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[15 - vi])
            T.writes(C[vi])
            C[vi] = B[15 - vi]
"""


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


def test_threads_of_a_block_may_reduce_together() -> None:
    sch = scheduled(ROWS)
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert [x.thread for x in loops if isinstance(x, For)] == ["blockIdx.x", "threadIdx.x"]
    assert isinstance(sch.get(sch.get_sblock("C")), BlockRealize)
