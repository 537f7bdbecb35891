"""`annotate_buffer_access`: declared boxes have to hold the accesses, and move producers."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import Cast, IntImm, Load
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.schedule.tree.tree import blocks
from compiler.script.parser import parse
from compiler.te.value import Value
from tests.unit.compiler.schedule.schedule_asserts import refused, scheduled

RESIZED = """
@T.prim_func
def main(A: T.Buffer((20,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.sblock_alloc_buffer((20,))
    for i in range(20):
        with T.sblock("B"):
            vi = T.axis.spatial(20, i)
            B[vi] = A[vi] + 1.0
    for i in range(10):
        with T.sblock("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[T.Cast("int32", T.floor(T.Cast("float32", vi) * T.float32(2) + 0.5))]
"""


def test_a_box_that_misses_an_access_is_refused() -> None:
    sch = scheduled(RESIZED)
    with refused(sch, "the accesses may leave the box", at='"C"'):
        sch.annotate_buffer_access("C", 0, "read", lambda v: [(v * 2 + 1, v * 2 + 3)])
    with refused(sch, "2 ranges for 1 dimension(s) of B", at='"C"'):
        sch.annotate_buffer_access("C", 0, "read", lambda v: [v, v])
    with refused(sch, "a range of 3 ends", at="def main"):
        sch.annotate_buffer_access("C", 0, "read", lambda v: [(v, v, v)])
    with refused(sch, 'buf_type is "both"'.replace('"', "'"), at="def main"):
        sch.annotate_buffer_access("C", 0, "both", lambda v: [v])


def test_a_change_that_leaves_the_box_is_refused() -> None:
    # Inlined, the block reads A at its own element and at the next one.
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((9,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 1]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + A[vi]
""")
    sch.annotate_buffer_access("C", "A", "read", lambda v: [(v - 1, v + 1)])
    with refused(sch, "which its T.reads does not name", at="def main"):
        sch.compute_inline("B")
    with sch.verified_once(), pytest.raises(ScheduleError, match="does not name"):
        sch.compute_inline("B")


def test_text_and_functions_are_the_same_ranges() -> None:
    texts = []
    one = Value(IntImm(1))
    for ranges in (
        lambda v: [(v * 2 + (one - 1), v * 2 + 2)],
        "lambda v: ((v * 2, v * 2 + 2),)",
    ):
        sch = scheduled(RESIZED)
        sch.annotate_buffer_access("C", 0, "read", ranges)
        again = Schedule(scheduled(RESIZED).func)
        exec("\n".join(sch.trace.as_python()), {"sch": again})
        assert again.func.script() == sch.func.script()
        texts.append(sch.func.script())
    assert texts[0] == texts[1]


def test_ranges_that_a_trace_cannot_repeat_are_refused() -> None:
    sch = scheduled(RESIZED)
    sch.blockize(sch.split(sch.get_loops("C")[0], [None, 5])[1])
    (outer,) = (r.block.iter_vars[0].var for r in blocks(sch.func) if r.block.name == "C_o")
    with refused(sch, "the function names vi_o: expected indices only", at="def main"):
        sch.annotate_buffer_access("C", 0, "read", lambda v: [(Value(outer), v + 20)])
    (table,) = (buffer for buffer in sch.func.buffers if buffer.name == "A")
    with refused(sch, "the function names A: expected indices only", at="def main"):
        load = Value(Cast("int32", Load(table, (IntImm(0),))))
        sch.annotate_buffer_access("C", 0, "read", lambda v: [(v * 0, v * 0 + load)])


def test_a_buffer_without_dimensions_has_no_ranges() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[()]
"""
    sch = scheduled(text)
    sch.annotate_buffer_access("C", "A", "read", lambda v: [])
    again = Trace.from_json(sch.trace.to_json()).apply_to(scheduled(text).func)
    assert again.func.script() == sch.func.script()


def test_ends_have_the_types_of_their_iterators() -> None:
    """Regions of iterators of both widths are printed as they are."""
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4, 3), "float32")):
    for i, j in T.grid(T.int64(4), 3):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    sch.annotate_buffer_access("B", 0, "write", lambda vi, vj: ((vi, vi + 3), (-1, vj + 1)))
    assert "T.writes(B[vi:vi + T.int64(3), -1:-1 + (vj + 2)])" in sch.func.script()
    assert structural_equal(parse(sch.func.script()), sch.func)
