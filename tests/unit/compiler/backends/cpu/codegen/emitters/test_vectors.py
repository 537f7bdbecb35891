"""Vectors that a program spells out, and functions of LLVM by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.error import BuildError
from compiler.driver import build, emit
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget
from tests.targets import runs_here
from tests.unit.compiler.backends.cpu.codegen.programs import (
    ONE_CORE,
    check_against_evaluation,
    run,
)

RNG = np.random.default_rng(11)
V3 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")


def program(params: str, *body: str) -> PrimFunc:
    """Return the program of one block that may read and write all of its parameters."""
    buffers = re.findall(r"(\w+): T.Buffer\(\((\d+),", params)
    regions = ", ".join(f"{name}[0:{size}]" for name, size in buffers)
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main({params}):",
        '    with T.sblock("all"):',
        f"        T.reads({regions})",
        f"        T.writes({regions})",
        *(f"        {line}" for line in body),
    ]
    return parse("\n".join(lines))


def assembly(func: PrimFunc) -> str:
    return disassemble(emit(func, V3).text, V3)


REGISTER_TILE = parse(
    """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 64), "float32"), B: T.Buffer((64, 16), "float32"),
         C: T.Buffer((4, 16), "float32")):
    for i, j in T.grid(4, 2):
        with T.sblock("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(C[vi, vj * 8:vj * 8 + 8])
            C[vi, vj * 8:vj * 8 + 8] = T.Broadcast(T.float32(0), 8)
    for k in range(64):
        for i in T.unroll(4):
            for j in T.unroll(2):
                with T.sblock("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(A[vi, vk], B[vk, vj * 8:vj * 8 + 8], C[vi, vj * 8:vj * 8 + 8])
                    T.writes(C[vi, vj * 8:vj * 8 + 8])
                    C[vi, vj * 8:vj * 8 + 8] = C[vi, T.Ramp(vj * 8, 1, 8)] + T.Broadcast(
                        A[vi, vk], 8) * B[vk, T.Ramp(vj * 8, 1, 8)]
"""
)


def test_a_tile_of_vectors_stays_in_registers_and_is_multiplied_and_added_at_once() -> None:
    check_against_evaluation(REGISTER_TILE)
    loops = re.findall(r"(\.LBB\d+_\d+):(.*?)\bj[a-z]+\s+\1\b", assembly(REGISTER_TILE), re.DOTALL)
    (inner,) = (body for _, body in loops if "vfmadd" in body)
    assert len(re.findall(r"vfmadd\d+ps\s+.*%ymm", inner)) == 8
    assert not re.search(r"vmovups\s+%ymm\d+, ", inner)


VECTORS = (
    'A: T.Buffer((32,), "float32"), N: T.Buffer((32,), "int32"), B: T.Buffer((32,), "float32")'
)


@pytest.mark.parametrize(
    "statement",
    [
        "B[0:8] = A[T.Ramp(8, 1, 8)]",
        "B[T.Ramp(0, 3, 8)] = A[T.Ramp(31, -2, 8)]",
        "B[0:5] = T.Broadcast(A[3], 5)",
        "B[0:8] = T.max(A[T.Ramp(0, 1, 8)], T.Broadcast(T.float32(0), 8))",
        "B[0:8] = T.Cast('float32x8', T.Ramp(N[0], 3, 8))",
        "B[0:8] = T.exp(A[T.Ramp(0, 1, 8)]) + T.Broadcast(A[9], 8)",
        "B[0:8] = A[T.min(N[T.Ramp(0, 1, 8)], T.Broadcast(31, 8)) % T.Broadcast(32, 8)]",
        "B[0:8] = T.Select(A[T.Ramp(0, 1, 8)] > T.Broadcast(T.float32(0), 8), "
        "A[T.Ramp(8, 1, 8)], T.Broadcast(A[0], 8))",
        "B[0:8] = T.if_then_else(A[T.Ramp(0, 1, 8)] > T.Broadcast(T.float32(0), 8), "
        "A[T.Ramp(8, 1, 8)], T.Broadcast(A[0], 8))",
        "B[0:8] = T.reinterpret('float32x8', N[T.Ramp(0, 1, 8)])",
        "B[0] = T.call_llvm_pure_intrin('float32', 'llvm.vector.reduce.fmax.v16f32', "
        "A[T.Ramp(0, 1, 16)])",
        "N[0] = T.call_llvm_pure_intrin('int32', 'llvm.vector.reduce.add', N[T.Ramp(0, 1, 16)])",
        "B[0:4] = T.call_llvm_pure_intrin('float32x4', 'llvm.copysign', "
        "A[T.Ramp(0, 1, 4)], A[T.Ramp(8, 1, 4)])",
    ],
)
def test_a_statement_on_vectors_is_what_it_evaluates_to(statement: str) -> None:
    check_against_evaluation(program(VECTORS, statement))


@runs_here(3)
def test_eight_bit_products_are_added_in_a_few_instructions() -> None:
    func = program(
        'A: T.Buffer((32,), "uint8"), B: T.Buffer((32,), "int8"), C: T.Buffer((8,), "int32")',
        'C[0:8] = C[T.Ramp(0, 1, 8)] + T.call_llvm_pure_intrin("int32x8", '
        '"llvm.x86.avx2.pmadd.wd", T.call_llvm_pure_intrin("int16x16", '
        '"llvm.x86.avx2.pmadd.ub.sw", A[T.Ramp(0, 1, 32)], B[T.Ramp(0, 1, 32)]), '
        "T.Broadcast(T.int16(1), 16))",
    )
    check_against_evaluation(func)
    a, b = RNG.integers(0, 100, 32).astype("uint8"), RNG.integers(-100, 100, 32).astype("int8")
    c = RNG.integers(-9, 9, 8).astype("int32")
    expected = c + (a.astype(int) * b.astype(int)).reshape(8, 4).sum(1)
    build(func, ONE_CORE)(a, b, c)
    np.testing.assert_array_equal(c, expected)
    text = assembly(func)
    assert "vpmaddubsw" in text
    assert "vpmaddwd" in text


def dot_of_bytes(lanes: int) -> PrimFunc:
    return program(
        f'A: T.Buffer(({4 * lanes},), "uint8"), B: T.Buffer(({4 * lanes},), "int8"), '
        f'C: T.Buffer(({lanes},), "int32")',
        f'C[0:{lanes}] = T.call_llvm_pure_intrin("int32x{lanes}", '
        f'"llvm.x86.avx512.vpdpbusd.{32 * lanes}", C[T.Ramp(0, 1, {lanes})], '
        f'T.reinterpret("int32x{lanes}", A[T.Ramp(0, 1, {4 * lanes})]), '
        f'T.reinterpret("int32x{lanes}", B[T.Ramp(0, 1, {4 * lanes})]))',
    )


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_dot_product_of_bytes_is_evaluated_and_refused_where_the_cpu_lacks_it(lanes: int) -> None:
    a = RNG.integers(0, 256, 4 * lanes).astype("uint8")
    b = RNG.integers(-128, 128, 4 * lanes).astype("int8")
    c = RNG.integers(-9, 9, lanes).astype("int32")
    expected = c + (a.astype(int) * b.astype(int)).reshape(lanes, 4).sum(1)
    got = evaluate(dot_of_bytes(lanes), {"A": a, "B": b, "C": c})["C"]
    np.testing.assert_array_equal(got, expected)
    needed = "avx512vnni, which" if lanes == 16 else r"avx512vnni or \+avxvnni, which"
    with pytest.raises(BuildError, match=f"{needed} x86-64-v3 lacks"):
        emit(dot_of_bytes(lanes), V3)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("B[0:8] = A[T.Ramp(0, 1, 4)]", "4"),
        ("B[0:8] = T.Broadcast(A[0], 4)", "4"),
        ("B[0:8] = A[T.Ramp(30, 1, 8)]", "can't prove that A"),
        ("B[0:8] = T.exp(A[T.Ramp(0, 1, 8)] + A[T.Ramp(0, 1, 4)])", "lanes"),
        (
            "B[0] = T.call_llvm_pure_intrin('float32', 'llvm.nothing', A[0])",
            "unknown LLVM function",
        ),
        (
            "B[0:4] = T.call_llvm_pure_intrin('float32x4', 'llvm.x86.avx2.pmadd.wd', A[0], A[1])",
            "llvm.x86.avx2.pmadd.wd takes",
        ),
    ],
)
def test_vectors_that_do_not_fit_are_refused(statement: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        program(VECTORS, statement)


BEFORE_THE_FIRST = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), C: T.Buffer((14,), "float32")):
    with T.sblock("all"):
        T.reads(A[0:12])
        T.writes(C[0:14])
        B = T.sblock_alloc_buffer((12,))
        for i in T.unroll(12):
            with T.sblock("B"):
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi]
        for i in T.vectorized(14):
            with T.sblock("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = T.if_then_else(1 <= vi and vi < 13, B[vi - 1], T.float32(0))
"""


@pytest.mark.parametrize(
    "cpu", ["x86-64-v2", pytest.param("x86-64-v3", marks=runs_here(3)), "x86-64"]
)
def test_lanes_before_the_first_register_are_masked(cpu: str) -> None:
    values = np.arange(1, 13, dtype="f")
    padded = run(parse(BEFORE_THE_FIRST), values, target=f"cpu -mcpu={cpu} -num-cores=1")
    np.testing.assert_array_equal(padded, np.pad(values, 1))
