"""Threads that share the work of a loop inside the one that started them."""

from __future__ import annotations

import pytest

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    matmul_relu,
    refused,
    scheduled,
)

ROWS = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.sblock_alloc_buffer((8, 4), scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for i in range(8):
            for j in range(4):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for k in range(1):
                with T.sblock("C"):
                    vx, vi, vk = T.axis.remap("SSS", [tx, i, k])
                    T.reads(B[vi, 3 - vx])
                    T.writes(C[vx, vi])
                    C[vx, vi] = B[vi, 3 - vx]
"""


def test_threads_share_what_each_would_do_again() -> None:
    sch = scheduled(ROWS)
    before = sch.func
    *_, j = sch.get_loops("B")
    sch.bind(j, "threadIdx.x")
    becomes(sch, ROWS.replace("j in range(4)", 'j in T.thread_binding(4, thread="threadIdx.x")'))
    computes_the_same(before, sch.func)


@pytest.mark.parametrize(
    ("old", "new", "reason", "at"),
    [
        (
            "for j in range(4):\n                with",
            "for j in range(2):\n                with",
            "loops tx and j would be the same threads, but have different extents",
            "for j in",
        ),
        (
            'B = T.sblock_alloc_buffer((8, 4), scope="shared")',
            "B = T.sblock_alloc_buffer((8, 4))",
            "block B writes B, which the threads of loop tx don't share",
            '"B"',
        ),
        (
            "    B[vi, vj] = A[vi, vj] * T.float32(2)",
            "    if tx < 9:\n                        B[vi, vj] = A[vi, vj] * T.float32(2)",
            "block B is not complete: threads can't share it",
            '"B"',
        ),
        (
            'vi, vj = T.axis.remap("SS", [i, j])\n',
            'vi, vj = T.axis.remap("SS", [i, j])\n                    T.where(j <= tx)\n',
            "block B differs in each iteration of loop tx: its threads can't share it",
            '"B"',
        ),
    ],
)
def test_threads_share_only_what_is_the_same_in_all(
    old: str, new: str, reason: str, at: str
) -> None:
    assert old in ROWS
    sch = scheduled(ROWS.replace(old, new))
    *_, j = sch.get_loops("B")
    with refused(sch, reason, at=at):
        sch.bind(j, "threadIdx.x")


def test_threads_do_not_share_a_buffer_that_another_block_writes_too() -> None:
    sch = scheduled(ROWS.replace("C[vx, vi] = B[vi, 3 - vx]", SECOND_WRITER))
    *_, j = sch.get_loops("B")
    with refused(sch, "block B is not the only one that writes B", at='"B"'):
        sch.bind(j, "threadIdx.x")


SECOND_WRITER = """C[vx, vi] = B[vi, 3 - vx]
            for k in range(1):
                with T.sblock("D"):
                    vi = T.axis.spatial(8, i)
                    T.reads()
                    T.writes(B[vi, 0])
                    B[vi, 0] = T.float32(0)"""


def test_threads_do_not_share_a_copy_of_what_each_writes() -> None:
    sch = scheduled(STAGED)
    *_, j = sch.get_loops("B")
    reason = "block B reads L, which each thread of loop tx may see otherwise: block L writes it"
    with refused(sch, reason, at='"L"'):
        sch.bind(j, "threadIdx.x")


STAGED = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.sblock_alloc_buffer((8, 4), scope="shared")
    L = T.sblock_alloc_buffer((8, 4), scope="local")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for i in range(8):
            for j in range(4):
                with T.sblock("L"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(L[vi, vj])
                    L[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(4):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(L[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = L[vi, vj] * T.float32(2)
            with T.sblock("C"):
                vx, vi = T.axis.remap("SS", [tx, i])
                T.reads(B[vi, 3 - vx])
                T.writes(C[vx, vi])
                C[vx, vi] = B[vi, 3 - vx]
"""


def test_blocks_of_threads_do_not_share_work() -> None:
    sch = scheduled(ROWS.replace("threadIdx.x", "blockIdx.x"))
    *_, j = sch.get_loops("B")
    with refused(sch, "loop tx is already bound to blockIdx.x", at="for tx in"):
        sch.bind(j, "blockIdx.x")


def test_the_threads_that_share_come_last() -> None:
    bound = 'T.thread_binding(4, thread="threadIdx.x")'
    text = ROWS.replace(f"tx in {bound}", "tx in range(4)").replace(
        "j in range(4)", f"j in {bound}"
    )
    sch = scheduled(text)
    tx, *_ = sch.get_loops("B")
    with refused(sch, "loop j is already bound to threadIdx.x", at="for j in"):
        sch.bind(tx, "threadIdx.x")


def test_nothing_is_put_where_threads_share_work() -> None:
    sch = scheduled(STAGED.replace('scope="local"', 'scope="shared"'))
    *_, j = sch.get_loops("L")
    sch.bind(j, "threadIdx.x")
    with refused(sch, "the threads of loop tx share what is under loop j", at="for j in"):
        sch.reverse_compute_at("B", j)


def test_a_block_that_starts_threads_is_not_moved_under_the_same_threads() -> None:
    sch = scheduled(TWO_KERNELS)
    _, i = sch.get_loops("C")
    reason = "the threads of loop i would share the work of block rows, whose loop i is bound to"
    with refused(sch, f"{reason} threadIdx.x, too", at='"rows"'):
        sch.compute_at("rows", i)


TWO_KERNELS = """
@T.prim_func
def main(A: T.Buffer((5, 6), "float32"), C: T.Buffer((5, 6), "float32")):
    B = T.sblock_alloc_buffer((5, 6))
    for k in range(5):
        with T.sblock("rows"):
            vk = T.axis.spatial(5, k)
            T.reads(A[vk, 0:6])
            T.writes(B[vk, 0:6])
            for i in T.thread_binding(6, thread="threadIdx.x"):
                with T.sblock("B"):
                    vi = T.axis.spatial(6, i)
                    T.reads(A[vk, vi])
                    T.writes(B[vk, vi])
                    B[vk, vi] = A[vk, vi] + T.float32(1)
        for i in T.thread_binding(6, thread="threadIdx.x"):
            with T.sblock("C"):
                vk, vi = T.axis.remap("SS", [k, i])
                T.reads(B[vk, 5 - vi])
                T.writes(C[vk, vi])
                C[vk, vi] = B[vk, 5 - vi] * T.float32(2)
"""


def test_a_product_of_matrices_is_fetched_together() -> None:
    sch = Schedule(matmul_relu(8))
    i, j, k = sch.get_loops("Y")
    i_0, tx = sch.split(i, [None, 4])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.reorder(i_0, tx, k_0, j, k_1)
    sch.bind(i_0, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    fetch = sch.cache_read("Y", 1, "shared")
    sch.compute_at(fetch, k_0)
    *_, ax0, ax1 = sch.get_loops(fetch)
    sch.bind(sch.split(sch.fuse(ax0, ax1), [None, 4])[1], "threadIdx.x")
    computes_the_same(matmul_relu(8), sch.func)
