"""`reindex`: buffers by the iterators of a block."""

from __future__ import annotations

from typing import Any

from compiler.schedule.schedule import Schedule
from compiler.script import parse
from tests.unit.compiler.schedule.primitives.programs import STENCIL
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    SHARED_LOOP,
    matmul_relu,
    refused,
    scheduled,
)

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
    with refused(sch, "is not a buffer: expected", at='"Y"'):
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


SOME_ELEMENTS = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16, 16), "float32")):
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            if A[vi] > T.float32(1):
                B[vi, vi] = A[vi]
"""


def test_a_write_under_a_condition_is_not_copied() -> None:
    """What a run leaves unwritten keeps its value, which a copy would overwrite."""
    sch = Schedule(parse(SOME_ELEMENTS))
    reason = "block B writes B under a condition, and a copy of all that it may write"
    with refused(sch, reason, at="T.sblock"):
        sch.reindex("B", ("write", 0))
    with refused(sch, reason, at="T.sblock"):
        sch.reindex_cache_write("B", 0, "global", lambda i: (i,))
