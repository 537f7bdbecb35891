"""Floats of 8 bits in whole programs: text, oracle, evaluator, kernel and search agree on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import loopwright as lw
from compiler import te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build, emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, mark

PROGRAM = """
@T.prim_func(s_tir=True)
def main(
    A: T.Buffer((64,), "float8_e4m3fn"),
    B: T.Buffer((64,), "float8_e4m3fn"),
    C: T.Buffer((64,), "float8_e5m2"),
    D: T.Buffer((64,), "int8"),
    E: T.Buffer((64,), "float8_e5m2"),
):
    for i in range(64):
        with T.sblock("greatest"):
            v = T.axis.spatial(64, i)
            B[v] = T.max(A[v] * A[v] + T.float8_e4m3fn(0.375), T.min_value("float8_e4m3fn"))
        with T.sblock("quotient"):
            v = T.axis.spatial(64, i)
            C[v] = T.Cast("float8_e5m2", A[v]) / T.float8_e5m2(2.0) + T.float8_e5m2("inf")
        with T.sblock("bits"):
            v = T.axis.spatial(64, i)
            D[v] = T.reinterpret("int8", A[v])
        with T.sblock("exponential"):
            v = T.axis.spatial(64, i)
            E[v] = T.Cast("float8_e5m2", T.exp(T.Cast("float32", A[v])))
"""


def outputs_of_kernel(func: PrimFunc, inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
    arrays = {b.name: inputs.get(b.name, np.zeros(64, b.dtype)) for b in func.buffers}
    build(func, ONE_CORE)(*arrays.values())
    return arrays


def test_text_is_read_back() -> None:
    func = parse(PROGRAM)
    assert str(parse(str(func))) == str(func)
    assert 'T.float8_e5m2("inf")' in str(func)


def test_kernel_oracle_and_evaluator_agree() -> None:
    func = parse(PROGRAM)
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    for results in (outputs_of_kernel(func, inputs), evaluate(func, inputs)):
        for name, array in expected.items():
            got = results[name]
            assert got.dtype == array.dtype
            np.testing.assert_array_equal(got.astype(np.float32), array.astype(np.float32))


def test_an_artifact_takes_them(tmp_path: Path) -> None:
    func = parse(PROGRAM)
    inputs = random_inputs(func, 0)
    expected = outputs_of_kernel(func, inputs)
    build(func, ONE_CORE).save(tmp_path / "kernel.lwk")
    arrays = {b.name: inputs.get(b.name, np.zeros(64, b.dtype)) for b in func.buffers}
    lw.Module.load(tmp_path / "kernel.lwk")(*arrays.values())
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name].view(np.uint8), array.view(np.uint8))


def test_a_product_with_sums_of_32_bits_is_tuned() -> None:
    dtype: DType = "float8_e4m3fn"
    func = lw.ops.matmul(8, 8, 16, dtype=dtype, out_dtype="float32")
    result = lw.tune(func, max_trials=2, target="cpu -num-cores=1")
    assert len(result.trials) == 2
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((8, 16), (16, 8)))
    c = np.empty((8, 8), np.float32)
    result.build()(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-6)


def test_eight_values_become_floats_in_seven_instructions() -> None:
    A = te.placeholder((8,), "float8_e4m3fn", name="A")
    func = te.create_prim_func([A, te.compute((8,), lambda i: A[i].astype("float32"), name="B")])
    target = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
    text = disassemble(emit(mark(func, i="vectorized"), target).text, target)
    assert len(re.findall(r"^\s+v(?!p?broadcast).*%ymm\d+$", text, re.MULTILINE)) == 7, text


def test_copies_with_zeros_around_them_keep_all_bits() -> None:
    """Nothing is rounded, and a signalling NaN stays one: whole vectors, and each element."""
    values = np.array([0x7F81, 0x0001, 0x8000, 0x3F80, 0xFF80], np.uint16)
    A = te.placeholder((5,), "bfloat16", name="A")
    B = te.compute(
        (8,), lambda i: te.if_then_else(i < 5, A[i], te.const(0.0, "bfloat16")), name="B"
    )
    func = te.create_prim_func([A, B])
    for program in (func, mark(func, i="vectorized")):
        # Rounding tests for NaN.
        assert str(0x7F800000) not in emit(program, CpuTarget(ONE_CORE)).text
        out = np.ones(8, np.uint16)
        build(program, ONE_CORE)(values.view("bfloat16"), out.view("bfloat16"))
        np.testing.assert_array_equal(out, [*values, 0, 0, 0])
