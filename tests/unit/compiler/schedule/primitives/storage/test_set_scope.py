"""`set_scope`: requirements."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import BlockRealize, Buffer
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    computes_the_same,
    elementwise,
    refused,
    scheduled,
)

EXCHANGE = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,), scope="shared")
    for i in T.thread_binding(16, thread="threadIdx.x"):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * T.float32(2)
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[15 - vi])
            T.writes(C[vi])
            C[vi] = B[15 - vi]
"""


def buffer_of(sch: Schedule, block: str) -> Buffer:
    realize = sch.get(sch.get_sblock(block))
    assert isinstance(realize, BlockRealize)
    return realize.block.writes[0].buffer


def test_set_scope_puts_a_buffer_and_its_name_elsewhere() -> None:
    sch = Schedule(elementwise())
    sch.set_scope("B", 0, "shared")
    assert (buffer_of(sch, "B").name, buffer_of(sch, "B").scope) == ("B_shared", "shared")
    computes_the_same(elementwise(), sch.func)
    before = sch.func
    sch.set_scope("B", "B_shared", "shared")
    assert sch.func is before


def test_set_scope_refuses_parameters_and_what_is_no_scope() -> None:
    sch = Schedule(elementwise())
    reason = "C is not allocated by a block: it is a parameter, or a view"
    with refused(sch, reason, at='"C"'):
        sch.set_scope("C", 0, "shared")
    with refused(sch, '"cloud" is not the name of a memory scope', at='"B"'):
        sch.set_scope("B", 0, "cloud")
    with refused(sch, "block B has no write 1; it has 0: B", at='"B"'):
        sch.set_scope("B", 1, "shared")


def test_set_scope_refuses_to_part_threads_that_exchange_values() -> None:
    sch = scheduled(EXCHANGE)
    reason = "a thread of block C may read what another wrote to B: it can't be local"
    with refused(sch, reason, at='"C"'):
        sch.set_scope("B", 0, "local")
    sch = scheduled(EXCHANGE.replace("15 - vi", "vi"))
    sch.set_scope("B", 0, "local")


FRAGMENTS = """
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    S = T.sblock_alloc_buffer((32, 32), scope="wmma.accumulator")
    M = T.sblock_alloc_buffer((32,))
    P = T.sblock_alloc_buffer((32, 32))
    for i, j in T.grid(32, 32):
        with T.sblock("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj]
    for i, j in T.grid(32, 32):
        with T.sblock("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(0)
            M[vi] = M[vi] + S[vi, vj]
    for i, j in T.grid(32, 32):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = S[vi, vj] / M[vi]
    for i, j in T.grid(32, 32):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = P[vi, vj]
"""


def test_set_scope_keeps_rows_and_elements_of_a_fragment_in_registers() -> None:
    sch = scheduled(FRAGMENTS)
    sch.set_scope("M", 0, "wmma.accumulator_rows")
    sch.set_scope("P", 0, "wmma.matrix_a")
    assert buffer_of(sch, "M").scope == "wmma.accumulator_rows"
    computes_the_same(scheduled(FRAGMENTS).func, sch.func)


@pytest.mark.parametrize(
    ("old", "new", "block", "memory_scope", "reason"),
    [
        (
            "S[vi, vj] / M[vi]",
            "S[vj, vi] / M[vi]",
            "P",
            "wmma.accumulator",
            "block P uses P and S at different rows or columns, which different lanes hold",
        ),
        (
            "S[vi, vj] / M[vi]",
            "S[vi, vj] / M[vj]",
            "M",
            "wmma.accumulator_rows",
            "block P uses M and S at different rows, which different lanes hold",
        ),
        (
            "M[vi] + S[vi, vj]",
            "M[vi] * S[vi, vj]",
            "M",
            "wmma.accumulator_rows",
            "block M stores each element of a row of S in the one number of the row that M has, "
            "and not their sum, minimum or maximum",
        ),
    ],
    ids=["a transposed tile", "the number of another row", "a product of a row"],
)
def test_set_scope_refuses_elements_that_different_lanes_hold(
    old: str, new: str, block: str, memory_scope: str, reason: str
) -> None:
    sch = scheduled(FRAGMENTS.replace(old, new))
    with refused(sch, reason, at='"P"' if block == "P" or "M[vj]" in new else '"M"'):
        sch.set_scope(block, 0, memory_scope)
