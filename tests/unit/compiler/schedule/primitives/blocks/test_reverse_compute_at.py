"""The requirements of `reverse_compute_at`: each one refused, with the place marked."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.core.nodes import For
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    INPUT_OVERWRITTEN,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_reverse_compute_at_refuses_a_block_that_runs_in_part() -> None:
    sch = scheduled(HALF)
    (i,) = sch.get_loops("B")
    with refused(sch, "block C is not proved to run for the whole", at='"C"'):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_refuses_a_loop_without_producers() -> None:
    sch = Schedule(matmul_relu())
    block = sch.cache_read("Y", 0, "local")
    i, _ = sch.get_loops(block)
    with refused(sch, "no producer of block C is under loop ax0", at="for ax0 in range(16)"):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_refuses_a_loop_after_the_block() -> None:
    sch = scheduled(CHAIN)
    (i,) = sch.get_loops("D")
    with refused(sch, "block C comes before loop i", at='"C"'):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_computes_all_of_a_block_without_producers() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("C")
    sch.reverse_compute_at("B", i)
    assert [x.var.name for x in map(sch.get, sch.get_loops("B")) if isinstance(x, For)] == [
        "i",
        "ax0",
        "ax1",
    ]
    computes_the_same(elementwise(), sch.func)


def test_reverse_compute_at_runs_again_under_a_reduction_of_its_producer() -> None:
    sch = Schedule(matmul_relu())
    _, _, k = sch.get_loops("Y")
    sch.reverse_compute_at("C", k)
    assert len(sch.get_loops("C")) == 3
    computes_the_same(matmul_relu(), sch.func)
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    sch.reorder(k, i, j)
    sch.reverse_compute_at("C", i)
    computes_the_same(matmul_relu(), sch.func)


def test_reverse_compute_at_takes_a_reduction_in_parts() -> None:
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, "B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((8,), lambda i: te.sum(B[i, k], axis=k), "C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    _, j = sch.get_loops("B")
    sch.reverse_compute_at("C", sch.split(j, [None, 3])[0])
    computes_the_same(func, sch.func)


def test_reverse_compute_at_refuses_reads_at_shifted_places() -> None:
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda i: A[i] * 2.0, "B")
    C = te.compute((16,), lambda i: B[i] + B[i + 2], "C")
    sch = Schedule(te.create_prim_func([A, C]))
    (i,) = sch.get_loops("B")
    with refused(sch, "block C needs different parts of v_i from its producers", at='"C"'):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_refuses_reads_at_a_stride() -> None:
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] * 2.0, "B")
    C = te.compute((16,), lambda i: B[i * 2], "C")
    sch = Schedule(te.create_prim_func([A, C]))
    (i,) = sch.get_loops("B")
    with refused(sch, "block C reads B at other indices than its own iterators", at='"C"'):
        sch.reverse_compute_at("C", i)


@pytest.mark.parametrize("read", ["B[vi + 2]", "B[17 - vi]", "B[vi // 6 * 6 + vi % 6]"])
def test_reverse_compute_at_follows_shifts_and_mirrors(read: str) -> None:
    sch = scheduled(SHIFTED.format(read=read))
    before = sch.func
    (i,) = sch.get_loops("B")
    sch.reverse_compute_at("C", sch.split(i, [None, 4])[0])
    computes_the_same(before, sch.func)


def test_reverse_compute_at_follows_a_flattening() -> None:
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((48,), lambda i: B[i // 8, i % 8], "C")
    func = te.create_prim_func([A, C])
    for loop in (0, 1):
        sch = Schedule(func)
        sch.reverse_compute_at("C", sch.get_loops("B")[loop])
        assert len(sch.get_loops("C")) == 2
        computes_the_same(func, sch.func)


def test_reverse_compute_at_refuses_producers_of_different_parts() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8, 8), lambda i, j: A[i] * A[j], "B")
    C = te.compute((8, 8), lambda i, j: B[i, j] + B[j, i], "C")
    sch = Schedule(te.create_prim_func([A, C]))
    i, _ = sch.get_loops("B")
    with refused(sch, "are not proved to make all of block C", at='"C"'):
        sch.reverse_compute_at("C", i)


OVERLAPPING = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    S = T.sblock_alloc_buffer((16,))
    for i in range(4):
        for j in range(4):
            with T.sblock("S"):
                vi = T.axis.spatial(16, i * 4 + j)
                T.reads(A[vi])
                T.writes(S[vi])
                S[vi] = A[vi] + T.float32(1)
        for j in range(5):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i * 4 + j)
                T.where(i * 4 + j < 16)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi], S[vi])
            T.writes(C[vi])
            C[vi] = B[vi] + S[vi]
"""


def test_reverse_compute_at_refuses_producers_that_make_different_parts() -> None:
    sch = scheduled(OVERLAPPING)
    i, _ = sch.get_loops("B")
    with refused(sch, "block C needs different parts of vi from its producers", at='"C"'):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_takes_iterations_that_overlap() -> None:
    text = OVERLAPPING.replace("B[vi] + S[vi]", "B[vi]").replace("B[vi], S[vi]", "B[vi]")
    sch = scheduled(text)
    i, _ = sch.get_loops("B")
    before = sch.func
    sch.reverse_compute_at("C", i)
    computes_the_same(before, sch.func)


def test_reverse_compute_at_runs_again_in_a_loop_that_the_block_does_not_need() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for again, i in T.grid(3, 16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
""")
    _, i = sch.get_loops("B")
    before = sch.func
    sch.reverse_compute_at("C", i)
    computes_the_same(before, sch.func)


def test_reverse_compute_at_refuses_inputs_that_come_after_the_loop() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, "B")
    S = te.compute((8,), lambda i: A[i] + 3.0, "S")
    C = te.compute((8,), lambda i: B[i] + S[i], "C")
    sch = Schedule(te.create_prim_func([A, C]))
    (i,) = sch.get_loops("B")
    with refused(sch, "block S writes what block C reads, after loop i", at='"S"'):
        sch.reverse_compute_at("C", i)


def test_reverse_compute_at_refuses_inputs_not_finished_in_a_shared_loop() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    S = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("S"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(S[vi])
            S[vi] = A[vi] + T.float32(1)
        for j in range(1):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi], S[15 - vi])
            T.writes(C[vi])
            C[vi] = B[vi] + S[15 - vi]
""")
    _, j = sch.get_loops("B")
    with refused(sch, "block S is not proved to have finished what block C reads of S", at='"C"'):
        sch.reverse_compute_at("C", j)


def test_reverse_compute_at_refuses_an_output_that_is_touched_before() -> None:
    sch = scheduled(
        INPUT_OVERWRITTEN.replace('"clear"', '"D"')
        .replace(
            "T.writes(C[vi])\n            C[vi] = B[vi]",
            "T.writes(A[vi])\n            A[vi] = B[vi]",
        )
        .replace(
            "T.writes(A[vi])\n            A[vi] = T.float32(0)",
            "T.writes(C[vi])\n            C[vi] = T.float32(0)",
        )
    )
    (i,) = sch.get_loops("B")
    with refused(sch, "block B touches A, which block C writes, before it", at='"B"'):
        sch.reverse_compute_at("C", i)


CHAIN = """
@T.prim_func
def main(
    A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")
):
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
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi] + T.float32(1)
    for i in range(16):
        with T.sblock("D"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(D[vi])
            D[vi] = A[vi]
"""

SHIFTED = """
@T.prim_func
def main(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((18,))
    for i in range(18):
        with T.sblock("B"):
            vi = T.axis.spatial(18, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[0:18])
            T.writes(C[vi])
            C[vi] = {read}
"""


def change_of_layout(old: int, new: int) -> Schedule:
    """Return a program that computes in tiles of one width, and copies to tiles of another."""
    A = te.placeholder((144 // old, 3, old), name="A")
    B = te.compute(A.shape, lambda i, j, k: A[i, j, k] * 2.0, "B")
    C = te.compute(
        (144 // new, 3, new),
        lambda i, j, k: B[(i * new + k) // old, j, (i * new + k) % old] + 1.0,
        "C",
    )
    return Schedule(te.create_prim_func([A, C]))


@pytest.mark.parametrize(
    ("old", "new", "loop", "factor"),
    [(16, 8, 0, 1), (16, 8, 1, 1), (16, 4, 0, 3), (16, 8, 1, 2), (9, 6, 0, 2), (6, 9, 0, 3)],
)
def test_reverse_compute_at_follows_a_change_of_the_layout(
    old: int, new: int, loop: int, factor: int
) -> None:
    sch = change_of_layout(old, new)
    before = sch.func
    outer, _ = sch.split(sch.get_loops("B")[loop], [None, factor])
    sch.reverse_compute_at("C", outer)
    computes_the_same(before, sch.func)


@pytest.mark.parametrize(("old", "new", "loop", "factor"), [(9, 6, 0, 1), (16, 8, 2, 2)])
def test_reverse_compute_at_refuses_a_part_of_a_tile(
    old: int, new: int, loop: int, factor: int
) -> None:
    sch = change_of_layout(old, new)
    outer, _ = sch.split(sch.get_loops("B")[loop], [None, factor])
    with refused(sch, "block C reads B at other indices than its own iterators", at='"C"'):
        sch.reverse_compute_at("C", outer)
