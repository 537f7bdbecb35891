"""Nests over fragments that are no tiles of an instruction are refused with what to do."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from tests.unit.compiler.passes.device.checked_lowering import LIMITS

COPY = """
@T.prim_func
def main(A: T.Buffer((32, 32), "{dtype}"), B: T.Buffer((32, 32), "{dtype}")):
    with T.sblock("root"):
        F = T.sblock_alloc_buffer((32, 32), "{dtype}", scope="{scope}")
        for w in T.thread_binding(2, thread="threadIdx.y"):
            for i, j in T.grid({rows}, 32):
                with T.sblock("load"):
                    vi = T.axis.spatial(32, w * {rows} + i)
                    vj = T.axis.spatial(32, j)
                    F[vi, vj] = A[vi, vj]
            for i, j in T.grid({rows}, 32):
                with T.sblock("store"):
                    vi = T.axis.spatial(32, w * {rows} + i)
                    vj = T.axis.spatial(32, j)
                    B[vi, vj] = {value}
"""


def copy(
    scope: str = "wmma.accumulator",
    rows: int = 16,
    value: str = "F[vi, vj]",
    dtype: str = "float32",
) -> lw.PrimFunc:
    return lw.parse(COPY.format(scope=scope, rows=rows, value=value, dtype=dtype))


def test_loops_over_a_fragment_need_not_be_split_by_tiles() -> None:
    (kernel,) = lower_for_device(copy(), LIMITS).kernels
    assert kernel.block == (32, 2, 1)


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (copy("wmma.matrix_a", dtype="float16"), "no instruction uses it: tensorize the product"),
        (copy(rows=8), "is not made of whole tiles of 16 by 8"),
        (copy(value="F[vi, vj] + F[vi, (vj + 1) % 32]"), "in different lanes"),
        (copy(value="F[vi, vj] + F[vj, vi]"), "in different lanes"),
    ],
)
def test_a_nest_over_no_whole_tiles_is_refused(func: lw.PrimFunc, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower_for_device(func, LIMITS)
