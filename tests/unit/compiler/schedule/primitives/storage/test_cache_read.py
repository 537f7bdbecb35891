"""`cache_read`, and what holds for all copies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import ops
from compiler.ir.core.nodes import For
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    IN_PLACE,
    INPUT_OVERWRITTEN,
    SHARED_LOOP,
    TWO_WRITERS,
    computes_the_same,
    matmul_relu,
    racing,
    refused,
    scheduled,
)

HALF_OVERWRITTEN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.sblock("A"):
            vi = T.axis.spatial(16, i)
            T.reads()
            T.writes(A[vi])
            A[vi] = T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
"""


UNDER_A_CONDITION = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(16):
        if i < 7:
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * T.float32(2)
            with T.sblock("C"):
                vi = T.axis.spatial(16, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi]
"""


CHOSEN = """
@T.prim_func
def main(N: T.Buffer((16,), "int32"), A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.opaque(16, T.max(T.min(N[i], 15), 0))
            T.reads(N[vi], A[vj])
            T.writes(C[vi])
            C[vi] = T.if_then_else(N[vi] > 0, A[vj], T.float32(0))
"""


HANDED_OUT = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
            with T.sblock("peek"):
                T.reads()
                T.writes()
                T.evaluate(T.tvm_storage_sync("shared", A.data))
"""


def test_cache_read_refuses_a_read_that_is_not_there() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y has no read 2; it has 0: A, 1: B", at='"Y"'):
        sch.cache_read("Y", 2, "shared")
    with refused(sch, "block Y does not read Z, but A, B", at='"Y"'):
        sch.cache_read("Y", "Z", "shared")


def test_cache_read_refuses_a_consumer_that_does_not_read() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block C does not read A in the scope of block Y", at='"Y"'):
        sch.cache_read("Y", 0, "shared", consumer_blocks=["C"])


def test_cache_read_refuses_a_consumer_that_writes() -> None:
    sch = scheduled(IN_PLACE)
    with refused(sch, "block A writes A, which it reads", at='"A"'):
        sch.cache_read("A", 0, "local", consumer_blocks=["A"])


def test_cache_read_refuses_a_second_writer() -> None:
    sch = scheduled(TWO_WRITERS)
    with refused(sch, "blocks B and B2 both write B: a copy has one source", at='"B2"'):
        sch.cache_read("C", 0, "local")


STEPS = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4, 16), "float32")):
    for t in range(4):
        for i in range(16):
            with T.sblock("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                T.reads(A[15 - vi])
                T.writes(C[vt, vi])
                C[vt, vi] = A[15 - vi] + T.float32(1)
        for i in range(16):
            with T.sblock("next"):
                vt, vi = T.axis.remap("OS", [t, i])
                T.reads(C[vt, vi])
                T.writes(A[vi])
                A[vi] = C[vt, vi] * T.float32(2)
"""


def test_a_copy_holds_what_was_there_before_the_writer() -> None:
    sch = scheduled(INPUT_OVERWRITTEN)
    before = sch.func
    sch.cache_read("B", 0, "local")
    verify(sch.func)
    computes_the_same(before, sch.func)


def test_the_copy_is_made_anew_in_each_iteration_that_writes() -> None:
    sch = scheduled(STEPS)
    before = sch.func
    sch.cache_read("C", "A", "local")
    outermost = sch.get(sch.get_loops("A_local")[0])
    assert isinstance(outermost, For)
    assert outermost.var.name == "t"
    verify(sch.func)
    computes_the_same(before, sch.func)


def test_cache_read_refuses_readers_before_and_after_the_writer() -> None:
    text = INPUT_OVERWRITTEN.replace("T.reads(B[vi])", "T.reads(A[vi], B[vi])")
    sch = scheduled(text.replace("C[vi] = B[vi]", "C[vi] = A[vi] + B[vi]"))
    with refused(
        sch, "block B reads before block clear writes: there is nothing to copy yet", at='"B"'
    ):
        sch.cache_read("B", 0, "local")


def test_cache_read_refuses_what_the_writer_may_not_have_written() -> None:
    sch = scheduled(HALF_OVERWRITTEN)
    with refused(sch, "block A is not proved to write all that block C reads of A", at='"C"'):
        sch.cache_read("C", 0, "local")


def test_copies_refuse_buffers_that_iterators_depend_on() -> None:
    sch = scheduled(CHOSEN)
    with refused(sch, "the iterators of block C depend on N", at='"C"'):
        sch.cache_read("C", "N", "local")


def test_copies_refuse_buffers_that_are_handed_out_unseen() -> None:
    sch = scheduled(HANDED_OUT)
    with refused(sch, "block C passes on the storage of A", at='"C"'):
        sch.cache_read("C", "A", "local")


def test_cache_read_refuses_a_place_under_one_condition() -> None:
    sch = scheduled(UNDER_A_CONDITION)
    with refused(sch, "blocks B and C share a condition, which can't contain a copy", at='"C"'):
        sch.cache_read("C", 0, "local")


def test_cache_read_refuses_a_vectorized_loop_around_the_copy() -> None:
    sch = scheduled(SHARED_LOOP.replace("B[0]", "B[vi]").replace("range(16)", "T.vectorized(16)"))
    with refused(sch, "loop i is vectorized", at="for i"):
        sch.cache_read("C", 0, "local")


def test_cache_read_refuses_iterations_side_by_side_that_read_of_others() -> None:
    sch = racing(SHARED_LOOP, "i")
    with refused(sch, "block B is not proved to write all that block C reads of B", at='"C"'):
        sch.cache_read("C", 0, "local")


def test_cache_read_refuses_iterations_side_by_side_that_write_no_box() -> None:
    text = SHARED_LOOP.replace("B[0]", "B[vi]").replace("range(16)", "T.parallel(16)")
    text = text.replace(
        "            B[vi] = A", "            if vi > 3:\n                B[vi] = A"
    )
    sch = scheduled(text)
    reason = "loop i runs side by side, and what an iteration writes of B is not proved to be a box"
    with refused(sch, reason, at="for i"):
        sch.cache_read("C", 0, "local")


@pytest.mark.parametrize("scope", ["a b", "local.", "1", "cloud"])
def test_caches_refuse_what_names_no_scope(scope: str) -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, f'"{scope}" is not the name of a memory scope', at='"Y"'):
        sch.cache_read("Y", 0, scope)
    with refused(sch, f'"{scope}" is not the name of a memory scope', at='"Y"'):
        sch.cache_write("Y", 0, scope)


def test_caches_refuse_what_is_declared_but_not_touched() -> None:
    text = HALF.replace("T.reads(B[vi])", "T.reads(B[vi], A[vi])")
    sch = scheduled(text)
    with refused(sch, "block C does not read A", at='"C"'):
        sch.cache_read("C", "A", "local")
    sch = scheduled(HALF.replace("T.writes(B[vi])", "T.writes(B[vi], C[vi])"))
    with refused(sch, "block B does not write C", at='"B"'):
        sch.cache_write("B", "C", "local")


@given(st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_copies_compute_the_same_on_any_shape(n: int, factor: int, is_fused: bool) -> None:
    func = matmul_relu(n)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
    if is_fused:
        sch.compute_at("Y", outer)
    sch.cache_read("Y", 0, "shared")
    sch.cache_read("C", "Y", "local")
    sch.cache_write("Y", 0, "local", consumer_blocks=[])
    sch.cache_write("C", 0, "global")
    verify(sch.func)
    computes_the_same(func, sch.func)


def test_a_copy_takes_all_of_a_dimension_whose_place_is_read_from_memory() -> None:
    func = ops.embedding(6, 4, 5)
    schedule = Schedule(func)
    schedule.blockize(schedule.get_loops("B")[-1])
    schedule.cache_read("B", 0, "local")
    verify(schedule.func)
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)["B"]
    np.testing.assert_array_equal(evaluate(schedule.func, inputs)["B"], expected)
