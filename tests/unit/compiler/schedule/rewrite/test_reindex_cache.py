"""`reindex_cache_read` and `reindex_cache_write`: copies in another layout."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.primitives.programs import STENCIL
from tests.unit.compiler.schedule.schedule_asserts import (
    TWO_WRITERS,
    computes_the_same,
    matmul_relu,
    refused,
    scheduled,
)

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
    with refused(sch, "block B is not a complete block: block B2 writes B, too", at='"B2"'):
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
