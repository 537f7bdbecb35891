"""The requirements of `read_at`, `write_at` and `cache_inplace`, and that they keep the meaning."""

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
    DIAGONAL_SUM,
    IN_PLACE,
    SHARED_LOOP,
    computes_the_same,
    elementwise,
    matmul_relu,
    racing,
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


def test_write_at_refuses_readers_after_the_last_writer() -> None:
    sch = scheduled(SHARED_LOOP)
    (i,) = sch.get_loops("B")
    with refused(sch, "block C reads B after it is written under loop i", at='"C"'):
        sch.write_at(i, "B", 0, "shared")


def test_write_at_refuses_values_from_before_the_loop() -> None:
    sch = scheduled(IN_PLACE)
    (i,) = sch.get_loops("A")
    with refused(sch, "block A may read what A held before the loop", at='"A"'):
        sch.write_at(i, "A", 0, "shared")


def test_write_at_refuses_what_may_not_be_written() -> None:
    text = SHARED_LOOP.replace(
        "            C[vi] = B[0]", "            if vi > 3:\n                C[vi] = B[0]"
    )
    sch = scheduled(text)
    (i,) = sch.get_loops("C")
    reason = "no block is proved to write all of a box of C in one iteration of loop i"
    with refused(sch, reason, at="for i"):
        sch.write_at(i, "C", 0, "shared")


def test_write_at_refuses_values_from_before_the_loop_that_are_read_first() -> None:
    sch = scheduled(IN_PLACE)
    sch.cache_inplace("A", 0, "shared")
    copy = sch.get_block("A_shared_1")
    with refused(sch, "block A_shared may read what A held before the loop", at='"A_shared"'):
        sch.write_at(sch.get_loops(copy)[0], copy, 0, "shared")


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


def test_write_at_refuses_a_sum_that_begins_for_one_element_only() -> None:
    schedule = scheduled(DIAGONAL_SUM)
    with refused(schedule, "block C may read what C held before the loop", at='"C"'):
        schedule.write_at(schedule.get_loops("C")[0], "C", 0, "local")
    with refused(schedule, "block C adds to what C held before", at='"C"'):
        schedule.cache_write("C", 0, "local")
