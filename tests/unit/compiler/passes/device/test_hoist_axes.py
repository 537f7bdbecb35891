"""Loops over axes become the outermost loops of a kernel."""

from __future__ import annotations

import pytest

from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.script.parser import parse
from tests.unit.compiler.passes.device.checked_lowering import LIMITS, lower_checked

BLOCKS_OF_A_THREAD = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    L = T.alloc_buffer((4, 8), "float32", scope="local")
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.thread_binding(8, thread="blockIdx.x"):
            with T.block("L"):
                vi, vj = T.axis.remap("SS", [i, j])
                L[vi, vj] = A[vi, vj] * 2.0
        {loop}
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = L[vi, vj]
"""


def test_axes_of_two_nests_are_the_same_threads() -> None:
    func = parse(
        BLOCKS_OF_A_THREAD.format(loop='for j in T.thread_binding(8, thread="blockIdx.x"):')
    )
    (kernel,) = lower_checked(func).kernels
    assert (kernel.grid, kernel.block) == ((8, 1, 1), (4, 1, 1))


def test_a_block_does_not_wait_for_the_others() -> None:
    func = parse(BLOCKS_OF_A_THREAD.format(loop="for j in range(8):"))
    with pytest.raises(LoweringError, match="blocks can't wait for each other"):
        lower_for_device(func, LIMITS)
