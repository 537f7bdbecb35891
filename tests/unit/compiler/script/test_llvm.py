"""Calls of LLVM's functions: their spellings, and those that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

TEXT = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = CALL
"""
ONES = 'T.call_llvm_pure_intrin("int32", "llvm.ctpop", A[v])'


@pytest.mark.parametrize(
    "call",
    [
        ONES,
        "T.popcount(A[v])",
        'T.call_llvm_intrin("int32", "llvm.ctpop", A[v])',
        'T.call_llvm_pure_intrin("int32", "llvm.ctpop.i32", T.uint32(1), A[v])',
        'T.call_llvm_pure_intrin("llvm.ctpop", T.uint32(1), A[v], dtype="int32")',
        'T.call_llvm_pure_intrin("int32", T.llvm_lookup_intrinsic_id("llvm.ctpop"), A[v])',
    ],
)
def test_each_spelling_counts_ones(call: str) -> None:
    func = round_tripped(TEXT.replace("CALL", call))
    a = np.array([0, 1, 3, -1, 255, -256, 2**31 - 1, -(2**31)], "int32")
    b = np.zeros_like(a)
    build(func, "cpu -num-cores=1")(a, b)
    assert b.tolist() == [0, 1, 2, 32, 8, 24, 31, 1]


def test_functions_of_the_dialect_by_their_names_in_llvm_are_those_of_the_dialect() -> None:
    text = TEXT.replace("int32", "float32")
    called = parse(text.replace("CALL", 'T.call_llvm_pure_intrin("float32", "llvm.exp", A[v])'))
    assert called.script() == parse(text.replace("CALL", "T.exp(A[v])")).script()


def test_a_flag_is_false() -> None:
    call = 'T.call_llvm_pure_intrin("int32", "llvm.ctlz", A[v], T.bool({}))'
    func = round_tripped(TEXT.replace("CALL", call.format(False)))
    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    build(func, "cpu -num-cores=1")(a, b)
    assert b.tolist() == [32, 31, 30, 30, 29, 29, 29, 29]
    with pytest.raises(ScriptError, match="its last one must be False"):
        parse(TEXT.replace("CALL", call.format(True)))


def test_an_instruction_that_is_not_listed_is_scheduled_and_not_built() -> None:
    call = 'T.call_llvm_pure_intrin("int32", "llvm.hexagon.V6.vrmpyub", A[v])'
    func = round_tripped(TEXT.replace("CALL", call))
    with pytest.raises(BuildError, match=r"calls llvm\.hexagon\.V6\.vrmpyub, which no backend"):
        build(func, "cpu -mcpu=x86-64")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('T.call_llvm_pure_intrin("int32", "llvm.trap", A[v])', "unknown LLVM function llvm.trap"),
        ('T.call_llvm_pure_intrin("int64", "llvm.ctpop", A[v])', "returns int32 here"),
        ('T.call_llvm_pure_intrin("int32", "llvm.ctpop")', "takes 1 operand"),
        ('T.call_llvm_pure_intrin("int32")', "expected a type, the name of a function"),
        ('T.call_llvm_pure_intrin("int32", "llvm.vector.reduce.add", A[v])', "does not take"),
        ("T.popcount(T.float32(1))", "expected an integer, got float32"),
    ],
)
def test_calls_that_do_not_fit_are_refused(call: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse(TEXT.replace("CALL", call))


def test_leading_zeros_are_an_int32() -> None:
    text = TEXT.replace("CALL", "T.clz(T.Cast('int64', A[v]))")
    a, b = np.array([0, 1, -1, 255, 256, 7, 2**31 - 1, 2], "int32"), np.zeros(8, "int32")
    build(round_tripped(text), "cpu -num-cores=1")(a, b)
    assert b.tolist() == [64, 63, 0, 56, 55, 61, 33, 62]


@pytest.mark.parametrize(("q", "s"), [(31, 0), (31, 4), (31, -3), (15, 0), (1, -5), (0, -1)])
def test_products_of_fixed_point_numbers_are_rounded(q: int, s: int) -> None:
    text = TEXT.replace("CALL", f"T.q_multiply_shift(A[v], 1518500250, {q}, {s})")
    a = np.array([0, 1, -1, 5, -5, 1000, -12345, 77], "int32")
    b = np.zeros(8, "int32")
    build(round_tripped(text), "cpu -num-cores=1")(a, b)
    exact = [int(x) * 1518500250 * 2 ** max(s, 0) for x in a]
    shift = q + max(-s, 0)
    rounded = [(x + (1 << shift - 1)) >> shift for x in exact]
    assert b.tolist() == np.array(rounded).astype("int32").tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("T.q_multiply_shift(A[v], 3, 0, 0)", "expected 1 to 62"),
        ("T.q_multiply_shift(A[v], 3, 31, 63)", "expected 1 to 62"),
        ("T.q_multiply_shift(A[v], 3, A[v], 0)", "a shift"),
        ("T.q_multiply_shift(T.float32(1), 3, 31, 0)", "expected an int32 number"),
        ("T.clz(T.float32(1))", "expected an integer, got float32"),
    ],
)
def test_operands_that_do_not_fit_are_refused(call: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse(TEXT.replace("CALL", call))
