"""Blocks and buffers are not brought to threads that would disturb each other there."""

from __future__ import annotations

import pytest

from compiler.driver import BuildError, build
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.refusals import elementwise, refused, scheduled

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
    schedule.write_at(rows, "C", 0, "local")
    with pytest.raises(BuildError, match="outside of any; threads share what is in"):
        build(schedule)
