"""The text of expressions: few parentheses, and C++ that means what the program does."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.text.expressions import CudaExpressions
from compiler.backends.cuda.text.scope import KernelScope
from compiler.backends.error import BuildError
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Select,
    Var,
    make_buffer,
)

A, B = make_buffer("A", (64, 8)), make_buffer("B", (64, 8))
HALF = make_buffer("H", (8,), "float16")
INTS = make_buffer("N", (8,), "int32")
BYTES = make_buffer("P", (8,), "int8")
LARGE = make_buffer("L", (1 << 20, 1 << 12))
I, J, N = Var("i"), Var("j"), Var("n")  # noqa: E741 - as in the texts
RANGES = {I: (0, 63), J: (0, 7), N: (-9, 9)}


def plus(a: Expr, b: Expr) -> BinOp:
    return BinOp("+", a, b)


def times(a: Expr, b: Expr) -> BinOp:
    return BinOp("*", a, b)


def at(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer, indices)


def text(expr: Expr) -> str:
    scope = KernelScope(32, {}, set())
    scope.ranges.update(RANGES)
    return CudaExpressions(scope).value(expr)


X, Y = at(A, I, J), at(B, I, J)
P, Q = at(INTS, J), at(INTS, IntImm(0))
CASES: dict[str, Expr] = {
    "A[i * 8 + j]": X,
    "A[j + 504]": at(A, IntImm(63), J),
    "A[i * 8 - j + 7]": at(A, I, BinOp("-", IntImm(7), J)),
    "L[(int64)i * 4096 + j]": at(LARGE, I, J),
    "A[i * 8 + j] * (B[i * 8 + j] + A[i * 8 + j])": times(X, plus(Y, X)),
    "A[i * 8 + j] - (B[i * 8 + j] - 0.1f)": BinOp("-", X, BinOp("-", Y, FloatImm(0.1))),
    "maximum(A[i * 8 + j], -INFINITY)": BinOp("max", X, FloatImm(float("-inf"))),
    "floorf(A[i * 8 + j] / B[i * 8 + j])": BinOp("//", X, Y),
    "i / 3": BinOp("//", I, IntImm(3)),
    "floor_div(n, 3)": BinOp("//", N, IntImm(3)),
    "floor_mod(i, n)": BinOp("%", I, N),
    "floor_mod<int8>(P[j], 3)": BinOp("%", at(BYTES, J), IntImm(3, "int8")),
    "(int)((unsigned)N[j] * (unsigned)N[0] + 1)": plus(times(P, Q), IntImm(1)),
    "(int8)((unsigned)P[j] + (unsigned)P[j])": plus(at(BYTES, J), at(BYTES, J)),
    "i << 3": BinOp("<<", I, IntImm(3)),
    "shift_right(i, N[j])": BinOp(">>", I, P),
    "(N[j] & 7) == 1": Compare("==", BinOp("&", P, IntImm(7)), IntImm(1)),
    "!(i < j || j < 2)": Not(
        Logic("or", Compare("<", I, J), Compare("<", J, IntImm(2))),
    ),
    "i < j ? A[i * 8 + j] : 0.0f": Conditional(Compare("<", I, J), X, FloatImm(0.0)),
    "1.0f + (i < j ? A[i * 8 + j] : 0.0f)": plus(
        FloatImm(1.0), Select(Compare("<", I, J), X, FloatImm(0.0))
    ),
    "A[i * 8 + j] != 0.0f": Cast("bool", X),
    "(int)A[i * 8 + j]": Cast("int32", X),
    "float16(A[i * 8 + j])": Cast("float16", X),
    "H[j] * 2.0f": times(at(HALF, J), FloatImm(2.0, "float16")),
    "expf(H[j])": Call("exp", (at(HALF, J),), "float16"),
    "exp((double)A[i * 8 + j])": Call("exp", (Cast("float64", X),), "float64"),
    "(int8)abs(P[j])": Call("abs", (at(BYTES, J),), "int8"),
    "__shfl_xor_sync(0xffffffffu, A[i * 8 + j], 16)": Call(
        "shuffle_xor", (X, IntImm(16)), "float32"
    ),
    "reinterpret<int>((float)A[i * 8 + j])": Call("reinterpret", (X,), "int32"),
    "(int)(-5 * (unsigned)N[j])": times(IntImm(-5), P),
}


@pytest.mark.parametrize("expected", CASES)
def test_an_expression_is_printed(expected: str) -> None:
    assert text(CASES[expected]) == expected


@pytest.mark.parametrize(
    "call",
    [
        Call("call_llvm_pure_intrin", (), "int32"),
        Call("reinterpret", (Cast("int8", P),), "float32"),
        Call("sin", (P,), "int32"),
    ],
)
def test_what_cuda_lacks_is_an_error(call: Call) -> None:
    with pytest.raises(BuildError, match=r"CUDA") as refusal:
        text(call)
    assert refusal.value.code == "codegen"
