"""The notes on `mm_relu` from their first program to the last, with the names that they use.

`import tvm` is `import loopwright as tvm`. The programs that they print are in `mm_relu.py`.
"""

# The parameters of the dialect's functions have types that are calls and strings.
# ruff: noqa: F821, N805, T201, UP031, UP037
# mypy: disable-error-code="arg-type, call-overload, misc, name-defined, no-untyped-def, valid-type"
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as tvm
from loopwright import te
from loopwright.script import T
from tests.tutorials import mm_relu as notes
from tests.tutorials.running import Array


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(
        A: T.Buffer[(128, 128), "float32"],
        B: T.Buffer[(128, 128), "float32"],
        C: T.Buffer[(128, 128), "float32"],
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def transformed() -> Any:
    sch = tvm.tir.Schedule(MyModule)
    block_Y = sch.get_block("Y", func_name="mm_relu")
    _i, j, k = sch.get_loops(block_Y)

    j0, j1 = sch.split(j, factors=[None, 4])

    sch.reorder(j0, k, j1)

    block_C = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_C, j0)

    sch.decompose_reduction(block_Y, k)
    return sch


def arrays() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.random((128, 128), dtype="float32"), rng.random((128, 128), dtype="float32")


def test_the_module_and_its_transformations() -> None:
    printed = tvm.parse_module(notes.MODULE)
    assert tvm.structural_equal(MyModule["mm_relu"], printed["mm_relu"])
    expected = tvm.parse_module(notes.after_decompose_reduction(4))
    assert tvm.structural_equal(transformed().mod["mm_relu"], expected["mm_relu"])


def test_both_modules_are_built_run_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    a_np, b_np = arrays()
    sch = transformed()

    rt_lib = tvm.build(MyModule, target="llvm")
    a_nd = tvm.nd.array(a_np)
    b_nd = tvm.nd.array(b_np)
    c_nd = tvm.nd.empty((128, 128), dtype="float32")
    func_mm_relu = rt_lib["mm_relu"]
    func_mm_relu(a_nd, b_nd, c_nd)
    c_mm_relu = np.maximum(a_np @ b_np, 0)
    np.testing.assert_allclose(c_mm_relu, c_nd.numpy(), rtol=1e-5)

    rt_lib_after = tvm.build(sch.mod, target="llvm")
    rt_lib_after["mm_relu"](a_nd, b_nd, c_nd)
    np.testing.assert_allclose(c_mm_relu, c_nd.numpy(), rtol=1e-5)

    f_timer_before = rt_lib.time_evaluator("mm_relu", tvm.cpu())
    print("Time cost of MyModule %g sec" % f_timer_before(a_nd, b_nd, c_nd).mean)
    f_timer_after = rt_lib_after.time_evaluator("mm_relu", tvm.cpu())
    print("Time cost of transformed sch.mod %g sec" % f_timer_after(a_nd, b_nd, c_nd).mean)
    assert capsys.readouterr().out.count("Time cost of") == 2


def test_the_module_of_tensor_expressions() -> None:
    A = te.placeholder((128, 128), "float32", name="A")
    B = te.placeholder((128, 128), "float32", name="B")
    k = te.reduce_axis((0, 128), "k")
    Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0), name="C")
    te_func = te.create_prim_func([A, B, C]).with_attr({"global_symbol": "mm_relu"})
    MyModuleFromTE = tvm.IRModule({"mm_relu": te_func})
    printed = tvm.parse_module(notes.MODULE_FROM_TE)["mm_relu"]
    assert tvm.structural_equal(MyModuleFromTE["mm_relu"], printed)


def test_a_trace_and_a_module_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sch = transformed()
    sch.trace.show()
    assert "sch.reverse_compute_at(" in capsys.readouterr().out
    sch.mod.show()
    shown = tvm.parse_module(capsys.readouterr().out)
    assert tvm.structural_equal(shown["mm_relu"], sch.mod["mm_relu"])
