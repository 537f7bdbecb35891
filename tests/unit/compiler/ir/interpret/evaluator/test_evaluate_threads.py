"""Kernels of a program: their axes, and who has a copy of a buffer."""

from __future__ import annotations

import pytest

from compiler.ir.interpret.evaluator.evaluate_expr import EvaluationError
from compiler.ir.interpret.evaluator.evaluate_threads import find_kernels, is_block_axis
from compiler.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for b in T.thread_binding({blocks}, thread="blockIdx.x"):
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            with T.sblock("A"):
                v = T.axis.spatial(8, b * {threads} + t)
                A[v] = v
"""


def test_a_kernel_has_the_extents_of_its_axes() -> None:
    (kernel,) = find_kernels(parse(PROGRAM.format(blocks=2, threads=4))).values()
    assert kernel.extents == {"blockIdx.x": 2, "threadIdx.x": 4}
    assert kernel.thread_axes == ("threadIdx.x",)


def test_a_program_without_threads_has_no_kernel() -> None:
    text = PROGRAM.format(blocks=2, threads=4)
    text = text.replace('T.thread_binding(2, thread="blockIdx.x")', "range(2)")
    text = text.replace('T.thread_binding(4, thread="threadIdx.x")', "range(4)")
    assert find_kernels(parse(text)) == {}


def test_axes_of_blocks_are_no_axes_of_threads() -> None:
    assert is_block_axis("blockIdx.y")
    assert not is_block_axis("threadIdx.y")
    assert not is_block_axis("vthread.x")


def test_loops_over_one_axis_must_agree() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((8,), "int32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("A"):
                v = T.axis.spatial(4, t)
                A[v] = v
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.sblock("B"):
                v = T.axis.spatial(8, t)
                B[v] = v
"""
    with pytest.raises(EvaluationError, match=r"threadIdx\.x"):
        find_kernels(parse(text))
