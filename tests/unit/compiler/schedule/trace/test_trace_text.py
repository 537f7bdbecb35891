"""Traces as Python."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import matmul_relu, scheduled
from tests.unit.compiler.schedule.trace.tiled import tiled


def test_the_printed_trace_is_python_that_does_the_same() -> None:
    sch = tiled()
    other = Schedule(matmul_relu())
    exec(sch.trace.python(), {"sch": other})
    assert structural_equal(other.func, sch.func)
    assert other.trace == sch.trace


def test_show_prints_the_trace_and_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    sch = tiled()
    sch.trace.show()
    assert "sch.reorder(" in capsys.readouterr().out
    sch.show()
    assert "def main(" in capsys.readouterr().out


@pytest.mark.parametrize(
    "ranges",
    [
        "lambda vi, vj: ((0, n), (vj, vj + 1))",
        "lambda vi, vj: ((vi, vi + 1), (T.min(vj, 7) - 0, vj + 1))",
        'lambda vi, vj: ((vi, vi + 1), (0, T.Cast("int32", T.Cast("int64", vj) + T.int64(1))))',
    ],
)
def test_a_lambda_that_python_cannot_run_is_printed_as_text(ranges: str) -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer(("n", 8), "float32"), B: T.Buffer(("n", 8), "float32")):
    n = T.int32()
    for i, j in T.grid(n, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    other = sch.copy()
    sch.annotate_buffer_access("B", 0, "write", ranges)
    exec(sch.trace.python(), {"sch": other})
    assert structural_equal(other.func, sch.func)
