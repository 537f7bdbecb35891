"""Copies of elements that are found by memory: no block writes it between the copy and its use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import computes_the_same, refused, scheduled

GATHER = """
@T.prim_func
def main(
    A: T.Buffer((6,), "int32"), W: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 4), "float32")
):
    I = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        for z in range(1):
            with T.sblock("I"):
                vi = T.axis.spatial(6, i + z)
                T.reads(A[vi])
                T.writes(I[vi])
                I[vi] = A[vi] % 6
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(W[I[vi] % 6, vj], I[vi])
                T.writes(C[vi, vj])
                C[vi, vj] = W[I[vi] % 6, vj] * T.float32(2)
"""

TWO_NESTS = GATHER.replace(
    """        for j in range(4):
            with T.sblock("C"):
                vi, vj""",
    """    for i_1 in range(6):
        for j in range(4):
            with T.sblock("C"):
                vi, vj""",
).replace('remap("SS", [i, j])', 'remap("SS", [i_1, j])')

SCATTER = GATHER.replace("C[vi, vj] = W[I[vi] % 6, vj]", "C[I[vi] % 6, vj] = W[vi, vj]").replace(
    "T.reads(W[I[vi] % 6, vj], I[vi])\n                T.writes(C[vi, vj])",
    "T.reads(W[vi, vj], I[vi])\n                T.writes(C[I[vi] % 6, vj])",
)

LATER = """
@T.prim_func
def main(
    A: T.Buffer((6,), "int32"), W: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 4), "float32")
):
    for i in range(6):
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(W[A[vi] % 6, vj], A[vi])
                T.writes(C[vi, vj])
                C[vi, vj] = W[A[vi] % 6, vj] * T.float32(2)
        for z in range(1):
            with T.sblock("A"):
                vi = T.axis.spatial(6, i + z)
                T.reads()
                T.writes(A[vi])
                A[vi] = 0
"""


def reindex_cache_read(sch: Schedule) -> None:
    """Copy the elements that are read, in another order."""
    sch.reindex_cache_read("C", 0, "global", lambda i, j: (j, i))


def reindex(sch: Schedule) -> None:
    """Copy the elements that are read, before the loops."""
    sch.reindex("C", ("read", 0))


def read_at(sch: Schedule) -> None:
    """Copy the elements that are read, in each iteration of the outer loop."""
    sch.read_at(sch.get_loops("C")[0], "C", 0, "global")


def reindex_cache_write(sch: Schedule) -> None:
    """Write the elements in another order, and copy them."""
    sch.reindex_cache_write("C", 0, "global", lambda i, j: (j, i))


REASON = "block C finds elements by I, which block I writes in between"


def test_no_copy_comes_before_what_finds_its_elements() -> None:
    sch = scheduled(GATHER)
    with refused(sch, REASON, at='"I"'):
        reindex_cache_read(sch)


@pytest.mark.parametrize(
    ("text", "copy"),
    [(TWO_NESTS, reindex), (TWO_NESTS, read_at), (GATHER, read_at), (LATER, read_at)],
)
def test_a_copy_after_what_finds_its_elements_is_the_same(
    text: str, copy: Callable[[Schedule], None]
) -> None:
    sch = scheduled(text)
    before = sch.func
    copy(sch)
    computes_the_same(before, sch.func)


def test_no_result_is_copied_after_what_finds_its_elements_changed() -> None:
    sch = scheduled(SCATTER)
    with refused(sch, REASON, at='"I"'):
        reindex_cache_write(sch)
