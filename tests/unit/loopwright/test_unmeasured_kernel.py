"""`lw.kernel` without a lock file: the schedule that the base model proposes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.core.program import PrimFunc

TARGET = "cpu -mcpu=x86-64-v2 -num-cores=1"

SCALAR = """
@T.prim_func
def first(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = A[0] + A[1]
"""


def test_a_kernel_is_proposed_without_a_trial() -> None:
    kernel = lw.kernel("matmul:33,65,17", target=TARGET)
    assert (kernel.source, kernel.schedule) == (
        lw.KernelSource.PROPOSED,
        lw.KernelSchedule.PROPOSED,
    )
    assert not kernel.is_tuned
    assert repr(kernel) == f"<Kernel matmul for {TARGET} (proposed)>"
    a, b = np.random.default_rng(0).random((33, 17), "f"), np.ones((17, 65), "f")
    c = np.zeros((33, 65), "f")
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_constants_are_passed_once() -> None:
    func: PrimFunc = lw.ops.matmul(8, 16, 32).with_attr("layout_free_buffers", [1])
    a, b = np.random.default_rng(0).random((8, 32), "f"), np.eye(32, 16, dtype="f")
    kernel = lw.kernel(func, target=TARGET, const_params={func.buffers[1].name: b})
    c = np.zeros((8, 16), "f")
    kernel(a, c)
    np.testing.assert_array_equal(c, a[:, :16])


def test_a_kernel_without_a_rule_says_that_it_has_the_default_schedule() -> None:
    with pytest.warns(lw.FallbackWarning, match="default schedule: no schedule rule applies"):
        kernel = lw.kernel(SCALAR, target=TARGET)
    assert kernel.source is lw.KernelSource.DEFAULT
    out = np.zeros(1, "f")
    kernel(np.array([1, 2, 4, 8], "f"), out)
    assert out[0] == 3


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(lw.OperatorError, match="unknown operator 'matmull'"):
        lw.kernel("matmull:4,4,4", target=TARGET)
