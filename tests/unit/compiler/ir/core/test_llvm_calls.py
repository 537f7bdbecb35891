"""Functions of LLVM: their types, and references against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler.ir.core.dtypes import DType
from compiler.ir.core.llvm_calls import (
    LLVM_FUNCTIONS,
    LlvmCallProblem,
    is_foreign_instruction,
    is_offered,
    llvm_function,
    llvm_result,
    spelled,
)

RNG = np.random.default_rng(0)


def test_pairs_of_words_are_multiplied_and_added() -> None:
    a, b = RNG.integers(-(2**15), 2**15, (2, 16))
    expected = (a.astype(np.int64) * b).reshape(8, 2).sum(1).astype(np.int32)
    reference = llvm_function("llvm.x86.avx2.pmadd.wd").reference
    assert reference(a.tolist(), b.tolist()) == expected.tolist()


def test_pairs_of_bytes_saturate() -> None:
    reference = llvm_function("llvm.x86.avx2.pmadd.ub.sw").reference
    assert reference([255, 255, 255, 255], [127, 127, -128, -128]) == [32767, -32768]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("llvm.x86.avx512.vpdpbusd.256", "uint8", "int8"),
        ("llvm.x86.avx2.vpdpbssd.256", "int8", "int8"),
        ("llvm.x86.avx2.vpdpbuud.256", "uint8", "uint8"),
    ],
)
def test_a_dot_product_of_words_reads_each_byte_with_its_sign(
    name: str, first: DType, second: DType
) -> None:
    words = [RNG.integers(0, 256, (8, 4)).astype(np.uint8) for _ in range(2)]
    start = RNG.integers(-(2**31), 2**31, 8).astype(np.int32)
    products = words[0].view(first).astype(np.int32) * words[1].view(second)
    expected = start + products.sum(1).astype(np.int32)
    lanes = [x.view(np.int32)[:, 0].tolist() for x in words]
    assert llvm_function(name).reference(start.tolist(), *lanes) == expected.tolist()


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("llvm.vector.reduce.add.v4i32", [[1, 2, 3, 4]], [10]),
        ("llvm.vector.reduce.smin", [[3, -2, 5]], [-2]),
        ("llvm.vector.reduce.xor", [[6, 3]], [5]),
        ("llvm.vector.reduce.fadd.v2f32", [[1.0], [2.0, 3.0]], [6.0]),
        ("llvm.fma.v2f32", [[2.0, 3.0], [4.0, 5.0], [1.0, 1.0]], [9.0, 16.0]),
        ("llvm.rint", [[0.5, 1.5, math.inf]], [0.0, 2.0, math.inf]),
        ("llvm.minnum", [[math.nan, 1.0], [2.0, math.nan]], [2.0, 1.0]),
    ],
)
def test_references_by_hand(name: str, args: list[list[float]], expected: list[float]) -> None:
    assert llvm_function(name).reference(*args) == expected


def test_types_of_results() -> None:
    assert llvm_result("llvm.x86.avx2.pmadd.wd", [("int16", 16)] * 2) == ("int32", 8)
    assert llvm_result("llvm.fabs.v8f32", [("float32", 8)]) == ("float32", 8)
    assert llvm_result("llvm.vector.reduce.fadd", [("float32", 1), ("float32", 8)]) == (
        "float32",
        1,
    )
    assert spelled("int32", 8) == "int32x8"
    assert spelled("int32", 1) == "int32"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("llvm.trap", [], "unknown LLVM function"),
        ("llvm.fabs", [], "takes 1 operand"),
        ("llvm.fabs", [("int32", 4)], r"does not take \(int32x4\)"),
        ("llvm.x86.avx2.pmadd.wd", [("int16", 8)] * 2, "takes .int16x16, int16x16."),
        ("llvm.vector.reduce.fadd", [("float64", 1), ("float32", 8)], "does not take"),
        ("llvm.vector.reduce.add", [("int32", 1)], r"does not take \(int32\)"),
        ("llvm.umax", [("int32", 4)] * 2, "does not take"),
        ("llvm.bswap", [("int8", 4)], r"does not take \(int8x4\)"),
        ("llvm.ctpop", [("bool", 4)], r"does not take \(boolx4\)"),
    ],
)
def test_calls_that_do_not_fit_are_refused(
    name: str, args: list[tuple[str, int]], message: str
) -> None:
    with pytest.raises(LlvmCallProblem, match=message):
        llvm_result(name, args)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "is_foreign"),
    [
        ("llvm.arm.neon.vpadals.v4i32.v8i16", True),
        ("llvm.nvvm.ldmatrix", True),
        ("llvm.x86.avx2.pmadd.wd", False),
        ("llvm.trap", False),
        ("llvm.x86.", False),
        ('llvm.x86.a"()', False),
    ],
)
def test_instructions_of_cpus_that_are_not_listed_are_foreign(name: str, is_foreign: bool) -> None:
    assert is_foreign_instruction(name) == is_foreign


def test_a_sum_that_overflows_is_infinite() -> None:
    total = llvm_function("llvm.vector.reduce.fadd").reference
    assert total([0.0], [1e308, 1e308]) == [math.inf]
    assert math.isnan(total([math.inf], [1.0, -math.inf])[0])


def test_a_function_is_offered_by_cpus_with_its_features() -> None:
    dot = LLVM_FUNCTIONS["llvm.x86.avx512.vpdpbusd.256"]
    assert is_offered(dot, "+avx2,+avxvnni")
    assert is_offered(dot, "+avx512vl,+avx512vnni")
    assert not is_offered(dot, "+avx512vnni")
    assert is_offered(LLVM_FUNCTIONS["llvm.fabs"], "")
