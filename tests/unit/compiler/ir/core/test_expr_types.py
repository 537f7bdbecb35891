"""Types and lanes of expressions."""

from __future__ import annotations

import pytest

from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Not,
    Ramp,
    Select,
    StringImm,
    Var,
    make_buffer,
)

i = Var("i")
HALF = make_buffer("A", (8, 8), "float16")
EIGHT = Ramp(i, 1, 8)


@pytest.mark.parametrize(
    ("expr", "dtype", "lanes"),
    [
        (i, "int32", 1),
        (IntImm(3, "int64"), "int64", 1),
        (FloatImm(1.0), "float32", 1),
        (BinOp("+", Var("n", "int64"), IntImm(1, "int64")), "int64", 1),
        (Load(HALF, (i, i)), "float16", 1),
        (Load(HALF, (i, EIGHT)), "float16", 8),
        (EIGHT, "int32", 8),
        (Broadcast(FloatImm(0.0), 4), "float32", 4),
        (Compare("<", EIGHT, Broadcast(i, 8)), "bool", 8),
        (Not(Compare("<", i, i)), "bool", 1),
        (Cast("float64", EIGHT), "float64", 8),
        (Select(Compare("<", i, i), EIGHT, EIGHT), "int32", 8),
        (Call("exp", (Load(HALF, (i, EIGHT)),), "float16"), "float16", 8),
        (Call("reinterpret", (EIGHT,), "int8"), "int8", 32),
        (Call("reinterpret", (EIGHT,), "int64"), "int64", 4),
        (
            Call(
                "call_llvm_pure_intrin",
                (
                    StringImm("llvm.x86.avx2.pmadd.wd"),
                    Cast("int16", Ramp(i, 1, 16)),
                    Cast("int16", Ramp(i, 1, 16)),
                ),
                "int32",
            ),
            "int32",
            8,
        ),
    ],
)
def test_an_expression_has_a_type_and_lanes(expr: Expr, dtype: str, lanes: int) -> None:
    assert dtype_of(expr) == dtype
    assert lanes_of(expr) == lanes


def test_the_type_of_a_long_sum_needs_no_deep_stack() -> None:
    total: Expr = i
    for _ in range(20_000):
        total = BinOp("+", total, i)
    assert (dtype_of(total), lanes_of(total)) == ("int32", 1)
