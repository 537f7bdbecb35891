"""`unsafe_hide_buffer_access` removes what a block declares and does not access."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script import parse
from tests.unit.compiler.schedule.schedule_asserts import elementwise, refused


def test_what_a_block_accesses_cannot_be_hidden() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "which its T.reads does not name", at='"C"'):
        sch.unsafe_hide_buffer_access("C", "read", [0])
    with refused(sch, "has no read 3", at='"C"'):
        sch.unsafe_hide_buffer_access("C", "read", [3])


def test_what_a_block_of_symbolic_extents_accesses_cannot_be_hidden() -> None:
    sch = Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * T.float32(2)
""")
    )
    with refused(sch, "the block accesses A", at='"B"'):
        sch.unsafe_hide_buffer_access("B", "read", [0])


def test_nothing_is_hidden_by_no_numbers() -> None:
    sch = Schedule(elementwise())
    sch.unsafe_hide_buffer_access("C", "read", [])
    again = Trace.from_json(sch.trace.to_json()).apply_to(elementwise())
    assert again.func.script() == elementwise().script()
