"""Rounded and clamped floats become integers in one instruction, with the same results."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build, emit
from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget

PROGRAM = """
@T.prim_func
def main(A: T.Buffer(({num},), "float32"), B: T.Buffer(({num},), "{dtype}")):
    for i in T.vectorized({num}):
        B[i] = T.Cast("{dtype}", {value})
"""
CLAMPED = "T.max(T.min({}, T.float32({high})), T.float32({low}))"
SPECIAL = [0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.5, -128.5, -129.5, 1e9, -1e9, 3e38, -3e38, -0.0]
NUMBERS = np.array(SPECIAL + [0.25 * n for n in range(-600, 600)], "float32")


def program(dtype: str, value: str, num: int = len(NUMBERS)) -> PrimFunc:
    return parse(PROGRAM.format(num=num, dtype=dtype, value=value))


@pytest.mark.parametrize("zero_point", [0, 3, 128, -7])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16"])
def test_clamped_floats_are_rounded_halves_to_even(dtype: str, zero_point: int) -> None:
    limits = np.iinfo(dtype)
    rounded = f"T.round(A[i]) + T.float32({zero_point})" if zero_point else "T.round(A[i])"
    value = CLAMPED.format(rounded, low=limits.min, high=limits.max)
    out = np.zeros(len(NUMBERS), dtype)
    build(program(dtype, value))(NUMBERS, out)
    expected = np.clip(np.rint(NUMBERS.astype("float64")) + zero_point, limits.min, limits.max)
    np.testing.assert_array_equal(out, expected.astype(dtype))


def test_a_wide_integer_is_rounded_without_limits() -> None:
    numbers = NUMBERS[np.abs(NUMBERS) < 2e9]
    out = np.zeros(len(numbers), "int32")
    build(program("int32", "T.round(A[i])", len(numbers)))(numbers, out)
    np.testing.assert_array_equal(out, np.rint(numbers.astype("float64")).astype("int32"))


@pytest.mark.parametrize(
    "value",
    [
        "T.round(A[i]) + T.float32(3)",  # float32 may round the sum
        CLAMPED.format("T.round(A[i])", low=-0.5, high=7),  # half a unit is lost by rounding first
        CLAMPED.format("T.floor(A[i])", low=0, high=7),
        CLAMPED.format("T.round(A[i]) * T.float32(2)", low=0, high=7),
    ],
)
def test_other_expressions_are_computed_as_they_are(value: str) -> None:
    numbers = np.array([0.5, -0.4, 2.75, 6.5, 7.5, -1.0, 16777217.0, 16777219.0], "float32")
    func = program("int32", value, len(numbers))
    out = np.zeros(len(numbers), "int32")
    build(func)(numbers, out)
    names = {"T.round": "np.rint", "T.floor": "np.floor", "T.max": "np.maximum"}
    names |= {"T.min": "np.minimum", "T.float32": "np.float32", "A[i]": "numbers"}
    for name, by_numpy in names.items():
        value = value.replace(name, by_numpy)
    np.testing.assert_array_equal(out, eval(value).astype("int32"))


@pytest.mark.parametrize(("mcpu", "register"), [("znver5", "zmm"), ("znver3", "ymm")])
def test_one_instruction_rounds_and_converts_and_one_takes_each_limit(
    mcpu: str, register: str
) -> None:
    value = CLAMPED.format("T.round(A[i])", low=0, high=255)
    target = CpuTarget(f"cpu -mcpu={mcpu} -num-cores=1")
    text = disassemble(emit(program("uint8", value, 16), target).text, target)
    for instruction in ("vminps", "vmaxps", "vcvtps2dq"):
        assert re.search(rf"\b{instruction}\b.*%{register}", text), instruction
    assert not re.search(r"vroundps|vrndscaleps|vcmp|vcvttps2dq", text)
