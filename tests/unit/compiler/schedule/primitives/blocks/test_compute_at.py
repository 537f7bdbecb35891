"""The requirements of `compute_at`: each one refused, with the place marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler import te
from compiler.ir.core.program import IRModule
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    INPUT_OVERWRITTEN,
    PREFIX_SUM,
    TWO_WRITERS,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_compute_at_refuses_an_output() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, "B")
    C = te.compute((8,), lambda i: B[i] + 1.0, "C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    (i,) = sch.get_loops("C")
    with refused(sch, "block B is an output block, as it writes B: it must stay", at='"B"'):
        sch.compute_at("B", i)


def test_compute_at_refuses_a_block_without_consumers() -> None:
    text = HALF.replace("C[vi] = B[vi]", "C[vi] = A[vi]").replace(
        "T.reads(B[vi])", "T.reads(A[vi])"
    )
    sch = scheduled(text)
    (i,) = sch.get_loops("C")
    with refused(sch, "block B has no consumers", at='"B"'):
        sch.compute_at("B", i)


def test_compute_at_refuses_a_second_writer() -> None:
    sch = scheduled(TWO_WRITERS)
    (i,) = sch.get_loops("C")
    with refused(sch, "block B is not a complete block: block B2 writes B, too", at='"B2"'):
        sch.compute_at("B", i)


def test_compute_at_refuses_a_consumer_outside_the_loop() -> None:
    sch = Schedule(matmul_relu())
    sch.cache_read("C", 0, "local")
    i, _ = sch.get_loops("C")
    with refused(
        sch, "block Y_local reads what block Y writes, but is not under loop", at="Y_local"
    ):
        sch.compute_at("Y", i)


def test_compute_at_refuses_inputs_that_are_written_in_between() -> None:
    sch = scheduled(INPUT_OVERWRITTEN)
    (i,) = sch.get_loops("C")
    with refused(sch, "block clear writes A after block B reads it", at='"clear"'):
        sch.compute_at("B", i)


def test_compute_at_refuses_consumers_of_partial_results() -> None:
    indented = PREFIX_SUM.split('        with T.sblock("C"):')
    body = indented[1].replace("\n            ", "\n                ")
    text = f'{indented[0]}        for t in range(1):\n            with T.sblock("C"):{body}'
    sch = scheduled(text)
    _, t = sch.get_loops("C")
    with refused(sch, "block C may read partial results of block S", at='"C"'):
        sch.compute_at("S", t)


def test_compute_at_refuses_a_loop_around_the_block() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("C")
    sch.compute_at("B", j)
    with refused(sch, "loop i is an ancestor of block B already", at="for i in range(16)"):
        sch.compute_at("B", i)


def test_compute_at_refuses_a_vectorized_loop() -> None:
    sch = Schedule(elementwise())
    _, j = sch.get_loops("C")
    sch.vectorize(j)
    with refused(sch, "loop j is vectorized", at="for j in T.vectorized(16)"):
        sch.compute_at("B", j)


def test_compute_at_refuses_an_update() -> None:
    sch = Schedule(matmul_relu())
    _, _, k = sch.get_loops("Y")
    sch.decompose_reduction("Y", k)
    i, _ = sch.get_loops("C")
    with refused(sch, "block Y_update adds to previous values", at='"Y_update"'):
        sch.compute_at("Y_update", i)


def test_compute_at_refuses_a_loop_of_another_scope() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(4):
        with T.sblock("outer"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi * 4 : vi * 4 + 4])
            T.writes(C[vi * 4 : vi * 4 + 4])
            for j in range(4):
                with T.sblock("C"):
                    vj = T.axis.spatial(4, j)
                    T.reads(B[vi * 4 + vj])
                    T.writes(C[vi * 4 + vj])
                    C[vi * 4 + vj] = B[vi * 4 + vj]
""")
    (j,) = sch.get_loops("C")
    with refused(sch, "loop j and block B are not in the same block scope", at="for j in range(4)"):
        sch.compute_at("B", j)


def test_compute_at_refuses_a_position_after_the_consumers() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("C")
    with refused(sch, "index 1 is not between 0 and 0", at="for i in range(16)"):
        sch.compute_at("B", i, index=1)


def test_the_root_block_stays() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("C")
    with refused(sch, '"root" is the root block', at="def main"):
        sch.compute_at("root", i)


def test_compute_at_refuses_a_loop_before_the_block() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for t in range(2):
        for i in range(16):
            with T.sblock("C"):
                vi = T.axis.spatial(16, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi]
        for i in range(16):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi]
""")
    _, i = sch.get_loops("C")
    with refused(sch, "block B comes after loop i", at='"B"'):
        sch.compute_at("B", i)
    with refused(sch, "block C comes before block B", at='"C"'):
        sch.compute_inline("B")
    with refused(sch, "block B comes after block C", at='"B"'):
        sch.reverse_compute_inline("C")
    with refused(sch, "block C reads B before it is written", at='"C"'):
        sch.cache_write("B", 0, "local")


def test_a_block_of_another_function_has_its_own_loops() -> None:
    sch = Schedule(IRModule((replace(elementwise(), name="f"), replace(elementwise(), name="g"))))
    sch.work_on("f")
    i, _ = sch.get_loops(sch.get_block("C", func_name="g"))
    with refused(sch, "loop i is in another function than the block", at="def f"):
        sch.compute_at("B", i)
    other = sch.get_block("C", func_name="g")
    with refused(sch, "the blocks are in different functions", at="def f"):
        sch.cache_read("C", 0, "local", consumer_blocks=[other])


def test_compute_at_refuses_a_reduction_over_a_part_of_its_points() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    B = T.sblock_alloc_buffer((4,))
    for i, k in T.grid(4, 5):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
""")
    (i,) = sch.get_loops("C")
    with refused(sch, "block B is not proved to reduce each element over all points", at='"B"'):
        sch.compute_at("B", i)


def test_points_that_a_condition_excludes_stay_excluded() -> None:
    """Partial sums of 10 terms by 4: those of the last two have one term less."""
    A = te.placeholder((6, 10), name="A")
    k = te.reduce_axis((0, 10), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), "B")
    func = te.create_prim_func([A, B])
    sch = Schedule(func)
    _, reduced = sch.get_loops("B")
    _, inner = sch.split(reduced, factor=4)
    partial = sch.rfactor(inner, 0)
    k_1 = sch.get_loops("B")[1]
    sch.compute_at(partial, k_1)
    text = sch.func.script()
    assert "T.where(ax0 * 4 + k_1 < 10)" in text
    inputs = {"A": np.arange(60, dtype="float32").reshape(6, 10)}
    np.testing.assert_array_equal(evaluate(sch.func, inputs)["B"], inputs["A"].sum(1))


MASKED_START = """
@T.prim_func
def main(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6,), "float32")
    for i, k in T.grid(6, 4):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < k)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(6):
        with T.sblock("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi]
"""


def test_a_reduction_whose_start_may_be_excluded_is_not_moved() -> None:
    sch = scheduled(MASKED_START)
    (i,) = sch.get_loops("C")
    reason = "block B is not proved to reduce each element over all points, once"
    with refused(sch, reason, at='"B"'):
        sch.compute_at("B", i)


GATHER = """
@T.prim_func
def main(ids: T.Buffer((4,), "int32"), W: T.Buffer((6,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.sblock_alloc_buffer((6,))
    for i in range(6):
        with T.sblock("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = W[vi] * T.float32(2)
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[ids[vi] % 6]
"""


def test_elements_are_not_found_where_the_consumer_does_not_run() -> None:
    sch = scheduled(GATHER)
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 5], preserve_unit_iters=False)
    with refused(sch, "can't prove that ids[i_1] is in bounds", at="def main"):
        sch.compute_at("B", inner)
    sch.compute_at("B", outer)
    computes_the_same(scheduled(GATHER).func, sch.func)


FOUND = """
@T.prim_func
def main(ids: T.Buffer((4,), "int32"), W: T.Buffer((6,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.sblock_alloc_buffer((6,))
    J = T.sblock_alloc_buffer((4,), "int32")
    for i in range(6):
        with T.sblock("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = W[vi] * T.float32(2)
    for i in range(4):
        with T.sblock("J"):
            vi = T.axis.spatial(4, i)
            J[vi] = ids[vi] % 6
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[J[vi] % 6]
"""


def test_a_block_is_not_moved_before_what_says_which_elements_are_needed() -> None:
    sch = scheduled(FOUND)
    (loop,) = sch.get_loops("C")
    with refused(sch, "block C finds elements by J, which block J writes in between", at='"J"'):
        sch.compute_at("B", loop, index=-2)
    sch.compute_at("B", loop)
    computes_the_same(scheduled(FOUND).func, sch.func)
