"""Blocks and buffers are not brought to threads that would disturb each other there."""

from __future__ import annotations

import pytest

from compiler.driver import build
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from tests.property.check_schedule import Meaning
from tests.unit.compiler.schedule.schedule_asserts import TRIANGLE, elementwise, refused, scheduled

# S is made anew for each j; every iteration runs it.
SUM_INSIDE = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    S = T.sblock_alloc_buffer((4,))
    for i, j in T.grid(4, 8):
        for k in range(8):
            with T.sblock("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + S[vi]
"""
SUM_BEFORE = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    S = T.sblock_alloc_buffer((4,))
    for i, k in T.grid(4, 8):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, j in T.grid(4, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + S[vi]
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((1,), "float32")):
    for k in range(12):
        with T.sblock("B"):
            vk = T.axis.reduce(12, k)
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + A[vk]
"""


@pytest.mark.parametrize("thread", ["threadIdx.x", "vthread.x", "blockIdx.x"])
def test_threads_do_not_add_to_one_sum(thread: str) -> None:
    schedule = scheduled(SUM_INSIDE)
    loop = schedule.get_loops("B")[1]
    with refused(schedule, "would add to the same elements of S", at='T.sblock("S")'):
        schedule.bind(loop, thread)


def test_each_thread_may_have_a_sum_of_its_own() -> None:
    schedule = scheduled(SUM_INSIDE)
    schedule.set_scope("S", 0, "local")
    schedule.bind(schedule.get_loops("B")[1], "threadIdx.x")
    build(schedule).close()


def test_a_sum_is_not_moved_below_threads_that_would_share_it() -> None:
    schedule = scheduled(SUM_BEFORE)
    loop = schedule.get_loops("B")[1]
    schedule.bind(loop, "threadIdx.x")
    with refused(schedule, "would add to the same elements of S", at='T.sblock("S")'):
        schedule.compute_at("S", loop)


def test_shared_memory_is_not_allocated_in_what_each_thread_runs() -> None:
    schedule = Schedule(elementwise(4))
    schedule.blockize(schedule.get_loops("C")[1])
    schedule.bind(schedule.get_loops("C_o")[0], "threadIdx.x")
    with refused(schedule, "is one for all of them", at='T.sblock("C_o")'):
        schedule.cache_write("C", 0, "shared")
    schedule.cache_write("C", 0, "local")
    build(schedule).close()


def test_a_reduction_does_not_follow_a_parallel_loop() -> None:
    schedule = scheduled(SUM)
    partial = schedule.rfactor(schedule.get_loops("B")[0], 0)
    loop = schedule.get_loops(partial)[0]
    schedule.parallel(loop)
    with refused(schedule, "would follow loop k, which is parallel", at="T.parallel"):
        schedule.reverse_compute_at("B", loop)


def test_what_threads_keep_to_themselves_is_not_read_elsewhere() -> None:
    schedule = Schedule(elementwise(4))
    rows, columns = schedule.get_loops("C")
    schedule.bind(rows, "blockIdx.x")
    schedule.bind(columns, "threadIdx.x")
    with refused(schedule, "may read of C_local what another thread wrote", at='"C_local"'):
        schedule.write_at(rows, "C", 0, "local")
    schedule.write_at(rows, "C", 0, "shared")
    Meaning(elementwise(4)).hold(schedule)


def test_a_consumer_does_not_move_to_where_only_other_threads_have_its_values() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((2, 4), "float32"), C: T.Buffer((2, 4), "float32")):
    B = T.sblock_alloc_buffer((2, 4), scope="shared")
    E = T.sblock_alloc_buffer((2, 4), scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("B"):
                vb, vi = T.axis.remap("SS", [b, i])
                B[vb, vi] = A[vb, vi] + T.float32(1)
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("E"):
                vb, vi = T.axis.remap("SS", [b, i])
                E[vb, vi] = A[vb, vi] * T.float32(2)
    for b, i in T.grid(2, 4):
        with T.sblock("C"):
            vb, vi = T.axis.remap("SS", [b, i])
            C[vb, vi] = B[vb, 3 - vi] + E[vb, vi]
""")
    func = schedule.func
    row, thread = schedule.get_loops("E")
    schedule.set_scope("B", 0, "local")  # while several kernels use it, it is no thread's own
    with refused(schedule, "may read of B_local what another thread wrote", at='T.sblock("C")'):
        schedule.reverse_compute_at("C", row)
    schedule.set_scope("B", 0, "shared")
    schedule.reverse_compute_at("C", thread)
    Meaning(func).hold(schedule)


def test_a_local_buffer_of_a_block_is_each_thread_s_own_once_a_loop_around_is_bound() -> None:
    func = elementwise(4)
    schedule = Schedule(func)
    rows, columns = schedule.get_loops("C")
    schedule.blockize(columns)
    schedule.cache_write("C", 0, "local")
    schedule.bind(schedule.get_loops("C")[0], "threadIdx.x")  # a kernel of its own
    with refused(schedule, "may read of C_local what another thread wrote", at='"C_local"'):
        schedule.bind(rows, "blockIdx.x")
    schedule.bind(schedule.get_loops("C_local")[-1], "threadIdx.x")
    schedule.bind(rows, "blockIdx.x")
    Meaning(func).hold(schedule)


# Reductions by threads

REDUCED = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    B = T.sblock_alloc_buffer((4, 8), scope="shared")
    for k in range(8):
        for i in range(4):
            with T.sblock("B"):
                vk, vi = T.axis.remap("SS", [k, i])
                B[vi, vk] = A[vi, vk] + T.float32(1)
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = {value}
"""
SUMS = REDUCED.format(start="T.float32(0)", value="C[vi] + B[vi, vk]")
HORNER = REDUCED.format(start="T.float32(0)", value="C[vi] * T.float32(3) + B[vi, vk]")
BIASED = REDUCED.format(start="T.float32(7)", value="C[vi] + B[vi, vk]")
PLACES = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), where: T.Buffer((4,), "int32"),
         most: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                where[vi] = -1
                most[vi] = T.float32("-inf")
            where[vi] = T.Select(most[vi] >= A[vi, vk], where[vi], vk)
            most[vi] = T.Select(most[vi] >= A[vi, vk], most[vi], {value})
"""


@pytest.mark.parametrize("text", [HORNER, BIASED, PLACES.format(value="A[vi, vk] * T.float32(2)")])
def test_threads_reduce_by_what_may_be_applied_to_parts(text: str) -> None:
    schedule = scheduled(text)
    with refused(schedule, "by a known commutative reducer", at='T.sblock("C")'):
        schedule.bind(schedule.get_loops("C")[1], "threadIdx.x")


@pytest.mark.parametrize("bound", [0, 1])
def test_threads_take_the_first_place_only_if_no_other_loop_reduces(bound: int) -> None:
    text = PLACES.format(value="A[vi, vk]")
    schedule = scheduled(text)
    schedule.bind(schedule.get_loops("C")[1], "threadIdx.x")
    Meaning(parse(text)).hold(schedule)
    schedule = scheduled(text)
    loops = schedule.split(schedule.get_loops("C")[1], [2, None])
    with refused(schedule, "compare the positions of equal values, too", at='T.sblock("C")'):
        schedule.bind(loops[bound], "threadIdx.x")


def test_threads_that_reduce_share_their_elements() -> None:
    schedule = scheduled(SUMS)
    outer, _ = schedule.split(schedule.fuse(*schedule.get_loops("C")), [None, 4])
    with refused(schedule, "binds both spatial and reduction iterators", at='T.sblock("C")'):
        schedule.bind(outer, "threadIdx.x")


def test_sums_are_made_by_threads_of_two_axes() -> None:
    schedule = scheduled(SUMS)
    outer, inner = schedule.split(schedule.get_loops("C")[1], [2, None])
    schedule.bind(outer, "threadIdx.y")
    schedule.bind(inner, "threadIdx.x")
    meaning = Meaning(parse(SUMS))
    meaning.hold(schedule)
    assert meaning.hold_built(schedule)


@pytest.mark.parametrize(
    ("axis", "reason"),
    [
        ("threadIdx.x", "by a known commutative reducer"),
        ("blockIdx.x", "would follow loop k, which is blockIdx.x"),
    ],
)
def test_a_consumer_that_moves_to_threads_reduces_as_they_can(axis: str, reason: str) -> None:
    schedule = scheduled(SUMS if axis == "blockIdx.x" else HORNER)
    loop = schedule.get_loops("B")[0]
    schedule.bind(loop, axis)
    with refused(schedule, reason, at='T.sblock("C")'):
        schedule.reverse_compute_at("C", loop)


def test_what_threads_reduce_together_is_not_copied_before_they_have() -> None:
    schedule = scheduled(SUMS)
    rows, thread = schedule.get_loops("C")
    schedule.bind(thread, "threadIdx.x")
    with refused(schedule, "may read of C_local what another thread wrote", at='"C_local"'):
        schedule.write_at(thread, "C", 0, "local")
    schedule.write_at(rows, "C", 0, "shared")
    Meaning(parse(SUMS)).hold(schedule)


def test_blocks_of_threads_do_not_race() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.sblock_alloc_buffer((4, 4))
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in range(4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)
""")
    with refused(schedule, "blocks of threads race", at="def main"):
        schedule.bind(schedule.get_loops("C")[1], "blockIdx.x")


def test_a_sum_moves_to_the_threads_that_make_its_terms() -> None:
    schedule = scheduled(SUMS)
    loop = schedule.get_loops("B")[0]
    schedule.bind(loop, "threadIdx.x")
    schedule.reverse_compute_at("C", loop)
    Meaning(parse(SUMS)).hold(schedule)


# The numbers of threads

TWO_NESTS = """
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32"),
         D: T.Buffer((32,), "float32")):
    for b in range(1):
        for i in range(10):
            with T.sblock("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = A[vi] + T.float32(1)
        for j in range(32):
            with T.sblock("D"):
                vj = T.axis.spatial(32, j)
                D[vj] = T.float32(1)
"""


def test_an_axis_has_one_number_of_threads_in_a_kernel() -> None:
    schedule = scheduled(TWO_NESTS)
    schedule.bind(schedule.get_loops("C")[1], "threadIdx.x")
    schedule.bind(schedule.get_loops("D")[1], "threadIdx.x")  # kernels of their own
    with refused(schedule, "they have extents 32 and 10", at="thread_binding(32"):
        schedule.bind(schedule.get_loops("C")[0], "blockIdx.x")


def test_a_loop_whose_extent_varies_is_not_bound() -> None:
    schedule = scheduled(TRIANGLE)
    with refused(schedule, "its extent varies: i + 1", at="thread_binding(i + 1"):
        schedule.bind(schedule.get_loops("C")[1], "threadIdx.x")
    schedule.bind(schedule.get_loops("C")[0], "threadIdx.x")


ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for k, i in T.grid(8, 4):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("thread", ["threadIdx.x", "vthread.x"])
def test_what_a_thread_keeps_to_itself_does_not_outlive_the_loop_over_threads(thread: str) -> None:
    schedule = scheduled(ROWS)
    schedule.write_at(schedule.get_loops("B")[1], "B", 0, "local")
    loop = schedule.get_loops("B")[1]
    with refused(schedule, "may read of B_local what another thread wrote", at='T.sblock("B")'):
        schedule.bind(loop, thread)


LINES = """
@T.prim_func
def main(A: T.Buffer((9, 6), "float32"), B: T.Buffer((9, 6), "float32")):
    L = T.sblock_alloc_buffer((9, 6), scope="local")
    for k, i in T.grid(9, 6):
        with T.sblock("S"):
            vk, vi = T.axis.remap("SS", [k, i])
            L[vk, vi] = A[vk, vi]
        with T.sblock("B"):
            vk, vi = T.axis.remap("SS", [k, i])
            B[vk, vi] = L[{line}, vi]
"""


def test_a_thread_does_not_read_what_threads_of_an_earlier_iteration_kept() -> None:
    schedule = scheduled(LINES.format(line="T.max(vk - 1, 0)"))
    with refused(schedule, "may read of L what another thread wrote", at='T.sblock("B")'):
        schedule.bind(schedule.get_loops("B")[1], "threadIdx.x")
    schedule = scheduled(LINES.format(line="vk"))
    schedule.bind(schedule.get_loops("B")[1], "threadIdx.x")
    Meaning(scheduled(LINES.format(line="vk")).func).hold(schedule)


TURNED = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    S = T.sblock_alloc_buffer((4,), scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        with T.sblock("S"):
            vx = T.axis.spatial(4, tx)
            S[vx] = A[vx] * T.float32(2)
        with T.sblock("C"):
            vx = T.axis.spatial(4, tx)
            C[vx] = S[3 - vx]
"""


def test_threads_exchange_values_in_memory_that_all_of_them_see() -> None:
    schedule = scheduled(TURNED)
    with refused(schedule, "may read what another wrote to S", at='T.sblock("C")'):
        schedule.set_scope("S", 0, "local")
    schedule.set_scope("S", 0, "global")
    Meaning(schedule.func).hold_built(schedule)
