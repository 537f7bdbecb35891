"""The requirements of `reindex`, `reindex_cache_read` and `reindex_cache_write`."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    SHARED_LOOP,
    TWO_WRITERS,
    computes_the_same,
    matmul_relu,
    refused,
    scheduled,
)

STENCIL = """
@T.prim_func
def main(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi:vi + 2])
            T.writes(C[vi])
            C[vi] = A[vi] + A[vi + 1]
"""

PADDED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((18,), "float32")):
    for i in range(18):
        with T.sblock("C"):
            vi = T.axis.spatial(18, i)
            T.reads(A[vi - 1])
            T.writes(C[vi])
            C[vi] = T.if_then_else(1 <= vi and vi < 17, A[vi - 1], T.float32(0))
"""

GUARDED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(20):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.where(i < 16)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi] * T.float32(2)
"""

INNER_LOOP = """
@T.prim_func
def main(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi, 0:4])
            T.writes(C[vi, 0:4])
            for j in range(4):
                C[vi, j] = A[vi, j] * T.float32(2)
"""


TWO_NESTS = """
@T.prim_func
def main(
    A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")
):
    for i in range(16):
        for j in range(1):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i + j)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi]
        for j in range(1):
            with T.sblock("C"):
                vi = T.axis.spatial(16, i + j)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi]
"""


def test_reindex_refuses_what_is_no_read_or_write() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y has no read 2; it has 0: A, 1: B", at='"Y"'):
        sch.reindex("Y", ("read", 2))
    with refused(sch, "block Y does not touch Z, but A, B, Y", at='"Y"'):
        sch.reindex("Y", "Z")
    wrong: Any = ("update", 0)
    with refused(sch, "is no buffer: expected", at='"Y"'):
        sch.reindex("Y", wrong)


def test_reindex_refuses_several_places_in_a_run() -> None:
    sch = scheduled(STENCIL)
    with refused(sch, "block C touches A at different places in a run", at='"C"'):
        sch.reindex("C", ("read", 0))
    sch = scheduled(INNER_LOOP)
    with refused(sch, "block C does not touch A at a place of its iterators alone", at='"C"'):
        sch.reindex("C", ("read", 0))


def test_reindex_refuses_a_block_of_blocks() -> None:
    sch = Schedule(matmul_relu())
    outer = sch.blockize(sch.get_loops("Y")[1])
    with refused(sch, "holds other blocks", at='"Y_o"'):
        sch.reindex(outer, ("read", 0))


def test_reindex_refuses_places_outside_of_the_buffer() -> None:
    sch = scheduled(PADDED)
    with refused(sch, "block C is not proved to address only elements of A", at='"C"'):
        sch.reindex("C", ("read", 0))
    with refused(sch, "block C is not proved to address only elements of A", at='"C"'):
        sch.reindex_cache_read("C", 0, "local", lambda i: i)


def test_reindex_refuses_a_writer_in_the_same_loops() -> None:
    sch = scheduled(SHARED_LOOP)
    reason = "block B writes B, which block C reads in the same loops"
    with refused(sch, reason, at='"B"'):
        sch.reindex("C", ("read", 0))
    reason = "block C touches B, which block B writes in the same loops"
    with refused(sch, reason, at='"C"'):
        sch.reindex("B", ("write", 0))


def test_reindex_refuses_a_loop_around_several_nests() -> None:
    sch = scheduled(TWO_NESTS)
    with refused(sch, "loop i holds more than the next loop", at="for i"):
        sch.reindex("B", ("read", 0))


def test_reindex_refuses_old_values_and_part_of_the_range() -> None:
    sch = Schedule(matmul_relu())
    sch.decompose_reduction("Y", sch.get_loops("Y")[0])
    sch.reindex("Y_init", ("write", 0))
    with refused(sch, "block Y_update adds to what Y held before", at='"Y_update"'):
        sch.reindex("Y_update", ("write", 0))
    sch = scheduled(HALF)
    reason = "block C is not proved to run for the whole of its iterators' ranges"
    with refused(sch, reason, at='"C"'):
        sch.reindex("C", ("write", 0))


def test_reindex_cache_refuses_maps_that_do_not_fit() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "takes 2 indices, not 3", at='"Y"'):
        sch.reindex_cache_read("Y", 0, "local", lambda i, j: (i, j))
    reason = "iterator k of block Y names the place in one of A and its copy, but not in both"
    reason = reason.replace("iterator k", "iterator v_k")
    with refused(sch, reason, at='"Y"'):
        sch.reindex_cache_read("Y", 0, "local", lambda i, j, k: (i,))
    reason = "may send different elements of A to one place"
    with refused(sch, reason, at='"Y"'):
        sch.reindex_cache_read("Y", 0, "local", lambda i, j, k: (i + k,))
    with refused(sch, "starts at 1, not at 0", at='"Y"'):
        sch.reindex_cache_write("Y", 0, "local", lambda i, j, k: (i + 1, j))
    with refused(sch, '"cloud" is not the name of a memory scope', at='"Y"'):
        sch.reindex_cache_write("Y", 0, "cloud", lambda i, j, k: (i, j))


def test_reindex_cache_refuses_blocks_that_do_not_always_run() -> None:
    sch = scheduled(GUARDED)
    reason = "block C does not run for all values of its iterators"
    with refused(sch, reason, at='"C"'):
        sch.reindex_cache_read("C", 0, "local", lambda i: i)
    with refused(sch, reason, at='"C"'):
        sch.reindex_cache_write("C", 0, "local", lambda i: i)


def test_reindex_cache_refuses_what_is_read_or_written_otherwise() -> None:
    sch = scheduled(TWO_WRITERS)
    with refused(sch, "blocks B and B2 both write B: a copy has one source", at='"B2"'):
        sch.reindex_cache_read("C", 0, "local", lambda i: i)
    with refused(sch, "block B is not the only one that writes B: so does B2", at='"B2"'):
        sch.reindex_cache_write("B", 0, "local", lambda i: i)
    sch = scheduled(STENCIL.replace("A[vi + 1]", "C[vi]").replace("A[vi:vi + 2]", "A[vi], C[vi]"))
    with refused(sch, "block C writes C, which it reads", at='"C"'):
        sch.reindex_cache_read("C", 1, "local", lambda i: i)
    with refused(sch, "block C adds to what C held before", at='"C"'):
        sch.reindex_cache_write("C", 0, "local", lambda i: i)


def convolution(size: int, kernel: int, stride: int) -> PrimFunc:
    A, W = te.placeholder((size,), name="A"), te.placeholder((kernel,), name="W")
    r = te.reduce_axis((0, kernel), "r")
    extent = (size - kernel) // stride + 1
    Y = te.compute((extent,), lambda x: te.sum(A[x * stride + r] * W[r], axis=r), "Y")
    return te.create_prim_func([A, W, Y], "main")


@pytest.mark.parametrize(("size", "kernel", "stride"), [(9, 3, 1), (11, 3, 2), (4, 4, 3)])
def test_reindexed_convolutions_compute_the_same(size: int, kernel: int, stride: int) -> None:
    func = convolution(size, kernel, stride)
    sch = Schedule(func)
    sch.reindex("Y", ("read", 0))
    sch.reindex("Y", "W")
    sch.reindex("Y", ("write", 0))
    computes_the_same(func, sch.func)
    sch = Schedule(func)
    sch.reindex_cache_read("Y", "A", "shared", lambda x, r: (r, x))
    sch.reindex_cache_read("Y", "W", "local", lambda x, r: (0, r))
    sch.reindex_cache_write("Y", "Y", "local", "lambda x, r: (x // 2, x % 2)")
    computes_the_same(func, sch.func)
