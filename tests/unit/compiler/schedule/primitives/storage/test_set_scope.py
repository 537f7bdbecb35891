"""`set_scope`: requirements."""

from __future__ import annotations

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
