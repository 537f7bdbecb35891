"""`read_at`: tiles that are read inside of loops."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    IN_PLACE,
    SHARED_LOOP,
    becomes,
    computes_the_same,
    elementwise,
    matmul_relu,
    racing,
    refused,
    scheduled,
)

COPY_8 = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = A[vi]
"""


COPY_8_BY_VECTOR = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        O[i] = A[i]
"""


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_copies_in_loops_of_a_product_compute_the_same(depth: int) -> None:
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    outer, inner = sch.split(k, [None, 4])
    loop = (i, j, outer, inner)[depth]
    sch.read_at(loop, "Y", 0, "shared")
    sch.read_at(loop, "Y", "B", "shared")
    sch.write_at(loop, "Y", 0, "local")
    computes_the_same(matmul_relu(), sch.func)


def test_copies_refuse_a_loop_that_is_not_around_the_block() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("C")
    with refused(sch, "loop i is not around block B in its scope", at="for i"):
        sch.read_at(i, "B", 0, "shared")
    with refused(sch, "loop i is not around block B in its scope", at="for i"):
        sch.write_at(i, "B", 0, "shared")


def test_copies_refuse_tiles_that_reach_outside() -> None:
    sch = Schedule(elementwise(10))
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 4])
    reason = "what is touched of A under loop i_0 is not proved to lie in the buffer"
    with refused(sch, reason, at="for i_0"):
        sch.read_at(outer, "B", 0, "shared")


def test_read_at_refuses_writers_after_the_first_reader() -> None:
    sch = scheduled(IN_PLACE)
    (i,) = sch.get_loops("A")
    with refused(sch, "block A writes A after it is read under loop i", at='"A"'):
        sch.read_at(i, "A", 0, "shared")


def test_read_at_refuses_writers_in_loops_side_by_side() -> None:
    sch = racing(SHARED_LOOP, "i")
    (i,) = sch.get_loops("C")
    with refused(sch, "block B writes B in loop i, which runs side by side", at='"B"'):
        sch.read_at(i, "C", 0, "shared")


def test_read_at_refuses_a_box_as_long_as_the_buffer_that_begins_inside() -> None:
    sch = Schedule(elementwise(3))
    i, _ = sch.get_loops("B")
    outer, _ = sch.split(i, [4, 3])
    with refused(sch, "what is touched of A under loop i_0 is not proved to lie in", at="for i_0"):
        sch.read_at(outer, "B", 0, "local")


def test_read_at_copies_what_tells_the_place_of_a_view() -> None:
    func = ops.embedding(5, 8, 2, 3)
    schedule = Schedule(func)
    TensorIntrin.register("copy_8", parse(COPY_8), parse(COPY_8_BY_VECTOR), override=True)
    rows = schedule.get_loops("B")[0]
    schedule.tensorize(schedule.get_loops("B")[-1], "copy_8")
    schedule.read_at(rows, "B_o", 1, "global")
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)["B"]
    np.testing.assert_array_equal(evaluate(schedule.func, inputs)["B"], expected)


SHIFTED_BY_THREADS = """
@T.prim_func
def main(A: T.Buffer((64, 9), "float32"), B: T.Buffer((64, 8), "float32")):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            for j in range(8):
                with T.sblock("B"):
                    vi = T.axis.spatial(64, bx * 16 + tx)
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] + A[vi, vj + 1]
"""


def test_shared_memory_holds_what_all_threads_access() -> None:
    sch = scheduled(SHIFTED_BY_THREADS)
    _, tx, _ = sch.get_loops("B")
    sch.read_at(tx, "B", 0, "shared")
    sch.write_at(tx, "B", 0, "shared")
    becomes(
        sch,
        """
@T.prim_func
def main(A: T.Buffer((64, 9), "float32"), B: T.Buffer((64, 8), "float32")):
    A_shared = T.sblock_alloc_buffer((64, 9), scope="shared")
    B_shared = T.sblock_alloc_buffer((64, 8), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            with T.sblock("A_shared"):
                v0 = T.axis.spatial(4, bx)
                T.reads(A[v0 * 16 : v0 * 16 + 16, 0:9])
                T.writes(A_shared[v0 * 16 : v0 * 16 + 16, 0:9])
                T.sblock_attr({"auto_copy": True})
                for ax0, ax1 in T.grid(16, 9):
                    A_shared[v0 * 16 + ax0, ax1] = A[v0 * 16 + ax0, ax1]
            for j in range(8):
                with T.sblock("B"):
                    vi = T.axis.spatial(64, bx * 16 + tx)
                    vj = T.axis.spatial(8, j)
                    B_shared[vi, vj] = A_shared[vi, vj] + A_shared[vi, vj + 1]
            with T.sblock("B_shared"):
                v0 = T.axis.spatial(4, bx)
                T.reads(B_shared[v0 * 16 : v0 * 16 + 16, 0:8])
                T.writes(B[v0 * 16 : v0 * 16 + 16, 0:8])
                T.sblock_attr({"auto_copy": True})
                for ax0, ax1 in T.grid(16, 8):
                    B[v0 * 16 + ax0, ax1] = B_shared[v0 * 16 + ax0, ax1]
""",
    )
    computes_the_same(scheduled(SHIFTED_BY_THREADS).func, sch.func)


def test_private_memory_holds_what_one_thread_reads() -> None:
    sch = scheduled(SHIFTED_BY_THREADS)
    _, tx, _ = sch.get_loops("B")
    sch.read_at(tx, "B", 0, "local")
    assert "T.reads(A[v0 * 16 + v1, 0:9])" in sch.func.script()
