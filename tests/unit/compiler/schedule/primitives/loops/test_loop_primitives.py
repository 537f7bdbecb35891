"""The requirements of primitives on loops: each one refused, with the place marked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.ir.core.nodes import TRUE, BinOp, BlockRealize, For, IntImm, Seq, seq
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import block_with_body
from tests.unit.compiler.schedule.schedule_asserts import (
    LOOSE_STORE,
    PREFIX_SUM,
    REPEATED_SUM,
    ROLLING,
    SHARED_LOOP,
    SYMBOLIC,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_split_refuses_a_loop_of_threads() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.bind(i, "threadIdx.x")
    with refused(sch, "loop i is bound to threadIdx.x", at="for i in T.thread_binding(16"):
        sch.split(i, [4, 4])


def test_split_refuses_a_loop_with_annotations() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.annotate(i, "pragma", 1)
    with refused(sch, "loop i has annotations: pragma", at="for i in"):
        sch.split(i, [4, 4])


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ([], "by no factors"),
        ([None, None], "at most one factor may be None, got [None, None]"),
        ([None, 0], "factor 0 of loop i is not positive"),
        ([-4, -4], "factor -4 of loop i is not positive"),
        ([3, 5], "the product 15 of the factors [3, 5] is less than the extent 16 of loop i"),
    ],
)
def test_split_refuses_factors_that_make_no_nest(factors: list[int | None], reason: str) -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, reason, at="for i in range(16)"):
        sch.split(i, factors)


def test_fuse_refuses_loops_that_are_not_nested_right_away() -> None:
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    with refused(sch, "loop k is not the whole body of loop i", at="for i in range(16)"):
        sch.fuse(i, k)
    sch.reverse_compute_at("C", i)
    with refused(sch, "loop j is not the whole body of loop i", at="for i in range(16)"):
        sch.fuse(i, j)


def test_fuse_refuses_no_loops() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "no loops are given", at="def main"):
        sch.fuse()


def test_fuse_refuses_a_loop_of_threads() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.bind(j, "threadIdx.x")
    with refused(sch, "loop j is bound to threadIdx.x", at="for j in T.thread_binding(16"):
        sch.fuse(i, j)


def test_fuse_refuses_a_loop_with_annotations() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.annotate(j, "pragma", 1)
    with refused(sch, "loop j has annotations: pragma", at="for j in"):
        sch.fuse(i, j)


def test_loops_that_are_split_or_fused_become_serial() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.vectorize(j)
    fused = sch.fuse(i, j)
    sch.parallel(fused)
    loops = [sch.get(loop) for loop in sch.split(fused, [None, 8])]
    assert [loop.kind for loop in loops if isinstance(loop, For)] == ["serial", "serial"]


def test_fuse_refuses_a_loop_whose_extent_depends_on_another() -> None:
    func = elementwise()
    nest = func.root.body
    assert isinstance(nest, Seq)
    outer = nest.stmts[0]
    assert isinstance(outer, For)
    assert isinstance(outer.body, For)
    inner = replace(outer.body, extent=BinOp("+", outer.var, IntImm(1)))
    body = block_with_body(func.root, seq(replace(outer, body=inner), nest.stmts[1]))
    sch = Schedule(replace(func, body=BlockRealize((), TRUE, body)))
    i, j = sch.get_loops("B")
    with refused(sch, "the extent of loop j depends on loop i", at="for j in range(i + 1)"):
        sch.fuse(i, j)
    with refused(sch, "the extent of loop j depends on loop i", at="for j in range(i + 1)"):
        sch.reorder(j, i)


def test_split_without_predication_refuses_factors_that_need_it() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    reason = "the factors [None, 5] make more iterations than loop i has"
    with refused(sch, reason, at="for i in range(16)"):
        sch.split(i, [None, 5], disable_predication=True)
    assert len(sch.split(i, [None, 4], disable_predication=True)) == 2


def test_reorder_refuses_a_loop_named_twice() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    with refused(sch, "a loop is named twice: i, j, i", at="def main"):
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
    with refused(sch, "the loops do not tell the points of block C apart", at='"C"'):
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


def test_stores_outside_blocks_are_refused() -> None:
    sch = scheduled(LOOSE_STORE)
    (i,) = sch.get_loops("C")
    with refused(sch, "this store lies in no block", at="C[i] = A[i] + T.float32(1.0)"):
        sch.parallel(i)


def test_split_refuses_factors_that_may_be_too_few_for_an_unknown_extent() -> None:
    sch = scheduled(SYMBOLIC)
    i, _ = sch.get_loops("C")
    with refused(sch, "of the factors [4, 4] may be less than the extent n", at="for i in"):
        sch.split(i, [4, 4])


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


def test_parallel_refuses_a_loop_inside_vectors() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.vectorize(i)
    with refused(sch, "loop i is vectorized", at="for i in T.vectorized(16)"):
        sch.parallel(j)


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
