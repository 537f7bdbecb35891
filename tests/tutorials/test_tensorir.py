"""The notes on TensorIR's elements: blocks and their axes, shapes from Python, dynamic shapes.

The transformations of that document are in `test_mm_relu.py`, with loop `j` split by 8.
"""

# A signature of the dialect holds strings that are no quoted types, which linters take them for.
# ruff: noqa: N805
from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import IRModule
from loopwright.script import T, ir_module
from tests.tutorials import mm_relu as notes
from tests.tutorials.running import Array, assert_close, random_array, run

VECTOR_ADD = """
@T.prim_func
def main(
    A: T.Buffer[(128,), "float32"],
    B: T.Buffer[(128,), "float32"],
    C: T.Buffer[(128,), "float32"],
):
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi] + B[vi]
"""

DYNAMIC = """
@T.prim_func
def mm_relu(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
    M = T.int32()
    N = T.int32()
    K = T.int32()
    A = T.match_buffer(a, (M, K), "float32")
    B = T.match_buffer(b, (K, N), "float32")
    C = T.match_buffer(c, (M, N), "float32")
    Y = T.alloc_buffer((M, N), dtype="float32")
    for i, j, k in T.grid(M, N, K):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(M, N):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def arguments(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    a, b = random_array(m, k), random_array(k, n, seed=1)
    return a, b, np.maximum(a @ b, 0)


def test_a_function_of_one_element_wise_sum() -> None:
    a, b = random_array(128), random_array(128, seed=1)
    np.testing.assert_array_equal(run(lw.parse(VECTOR_ADD), a, b), a + b)


def test_a_block_is_whole_without_its_loops() -> None:
    """A block's axes say where its values come from; a loop that does not fit is refused."""
    short = VECTOR_ADD.replace("range(128)", "range(256)")
    with pytest.raises(lw.ScriptError, match="vi"):
        lw.parse(short)


def test_loops_by_range_and_by_grid_are_the_same() -> None:
    nested = notes.MY_MODULE.replace(
        "        for i, j in T.grid(128, 128):\n            with",
        "        for i in range(128):\n         for j in range(128):\n            with",
    )
    assert nested != notes.MY_MODULE
    parsed = lw.parse_module(nested)["mm_relu"]
    assert structural_equal(parsed, lw.parse_module(notes.MODULE)["mm_relu"])


def test_shapes_and_types_come_from_python() -> None:
    M = N = K = 128
    dtype = "float32"

    @ir_module
    class FromPython:
        @T.prim_func
        def mm_relu(
            A: T.Buffer((M, K), dtype),  # type: ignore[valid-type]
            B: T.Buffer((K, N), dtype),  # type: ignore[valid-type]
            C: T.Buffer((M, N), dtype),  # type: ignore[valid-type]
        ) -> None:
            T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
            Y = T.alloc_buffer((M, N), dtype)
            for i, j, k in T.grid(M, N, K):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
            for i, j in T.grid(M, N):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    module: object = FromPython
    assert isinstance(module, IRModule)
    assert structural_equal(module["mm_relu"], lw.parse_module(notes.MODULE)["mm_relu"])


def test_dynamic_shapes_become_static_ones() -> None:
    func = lw.parse(DYNAMIC)
    same = func.specialize({"M": 128, "N": 128, "K": 128})
    assert structural_equal(same, lw.parse_module(notes.MODULE)["mm_relu"])
    a, b, expected = arguments(16, 24, 40)
    assert_close(run(func.specialize({"M": 16, "N": 24, "K": 40}), a, b), expected)


def test_a_dynamic_program_is_printed_and_read_back() -> None:
    func = lw.parse(DYNAMIC)
    assert structural_equal(lw.parse(func.script()), func)


def test_a_specialised_program_is_transformed() -> None:
    sch = lw.Schedule(lw.parse(DYNAMIC).specialize({"M": 128, "N": 128, "K": 128}))
    block_Y = sch.get_block("Y")
    _, j, k = sch.get_loops(block_Y)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.decompose_reduction(block_Y, k)
    expected = lw.parse_module(notes.after_decompose_reduction(8))["mm_relu"]
    assert structural_equal(sch.func, expected)
