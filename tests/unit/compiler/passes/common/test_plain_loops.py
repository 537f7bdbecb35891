"""Scheduled programs as loops, for readers."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.passes.common.plain_loops import plain_loops
from compiler.schedule.schedule import Schedule
from compiler.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((SIZE,), "float32"), C: T.Buffer((SIZE,), "float32")):
    B = T.alloc_buffer((SIZE,), "float32")
    for i in range(SIZE):
        with T.block("B"):
            vi = T.axis.spatial(SIZE, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(SIZE):
        with T.block("C"):
            vi = T.axis.spatial(SIZE, i)
            C[vi] = B[vi] + T.float32(1)
"""

LOOPS = """
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    for i_0 in T.parallel(3):
        for i_1 in range(4):
            with T.allocate((1,), "float32") as B:
                if i_0 * 4 + i_1 < 10:
                    B[0] = A[i_0 * 4 + i_1] * T.float32(2)
                if i_0 * 4 + i_1 < 10:
                    C[i_0 * 4 + i_1] = B[0] + T.float32(1)
"""


def test_guards_are_conditions_and_buffers_are_where_they_are_used() -> None:
    sch = Schedule(parse(PROGRAM.replace("SIZE", "10")))
    outer, inner = sch.split(sch.get_loops("C")[0], factor=4)
    sch.compute_at("B", inner, preserve_unit_loops=True)
    sch.parallel(outer)
    assert structural_equal(plain_loops(sch.func), parse(LOOPS))


@pytest.mark.parametrize("extent", ["n", "n + 1"])
def test_a_symbolic_program_has_loops_too(extent: str) -> None:
    text = f"""
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, ({extent},), "float32")
    for i in range({extent}):
        with T.block("A"):
            vi = T.axis.spatial({extent}, i)
            A[vi] = T.float32(1)
"""
    loops = plain_loops(parse(text)).script()
    assert "sblock" not in loops
    assert f"for i in range({extent}):" in loops
