"""Rows of fragments are reduced by lanes that exchange their results."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.backends.emulator.counters import InstructionClass
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from tests.unit.compiler.passes.device.checked_lowering import LIMITS
from tests.unit.tuner.space.gpu_spaces import emulate

ROWS = """
@T.prim_func
def main(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((32, 16), scope="wmma.accumulator")
        M = T.sblock_alloc_buffer((32,), scope="wmma.accumulator_rows")
        for w in T.thread_binding(2, thread="threadIdx.y"):
            for i, j in T.grid(16, 16):
                with T.sblock("load"):
                    vi = T.axis.spatial(32, w * 16 + i)
                    vj = T.axis.spatial(16, j)
                    S[vi, vj] = A[vi, vj]
            for i in range(16):
                with T.sblock("start"):
                    vi = T.axis.spatial(32, w * 16 + i)
                    M[vi] = T.float32(0.25)
            for i, j in T.grid(16, 16):
                with T.sblock("reduce"):
                    vi = T.axis.spatial(32, w * 16 + i)
                    vj = T.axis.reduce(16, j)
                    {update}
            for i, j in T.grid(16, 16):
                with T.sblock("store"):
                    vi = T.axis.spatial(32, w * 16 + i)
                    vj = T.axis.spatial(16, j)
                    B[vi, vj] = {value}
"""


def rows(update: str, value: str = "S[vi, vj] - M[vi]") -> lw.PrimFunc:
    return lw.parse(ROWS.format(update=f"M[vi] = {update}", value=value))


@pytest.mark.parametrize(
    "update",
    ["M[vi] + S[vi, vj]", "T.max(S[vi, vj], M[vi])", "T.min(M[vi], S[vi, vj] * T.float32(2))"],
    ids=["sum", "maximum", "minimum"],
)
def test_a_reduction_begins_with_what_a_row_has(update: str) -> None:
    func = rows(update)
    (report,) = emulate(func, lw.Schedule(func))
    assert report.instructions[InstructionClass.WARP] == 2 * 2 * 2  # warps, rows, exchanges
    assert InstructionClass.SHARED_STORE not in report.instructions


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (rows("M[vi] * S[vi, vj]"), "is not their sum, minimum or maximum"),
        (rows("S[vi, vj] - M[vi]"), "is not their sum, minimum or maximum"),
        (rows("M[vi] + S[vi, vj] * M[vi]"), "is not their sum, minimum or maximum"),
        (rows("M[vi] + S[vi, vj]", "M[vi]"), "would be stored by all lanes that hold a row of M"),
        (rows("M[vi] + S[vi, vj]", "S[vi, vj] - M[vi // 16 * 16 + vj]"), "in different lanes"),
    ],
    ids=["product", "difference", "twice", "stored as rows", "a row for each column"],
)
def test_other_uses_of_rows_are_refused(func: lw.PrimFunc, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower_for_device(func, LIMITS)
