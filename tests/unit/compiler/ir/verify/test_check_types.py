"""Types of operations and operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compiler.ir.core.nodes import (
    BinOp,
    Call,
    Cast,
    Expr,
    IntImm,
    Load,
    Select,
    Var,
    make_buffer,
)
from compiler.ir.verify.verify import VerifyError, verify
from tests.unit.compiler.ir.verify.small_programs import (
    ZERO,
    A,
    N,
    at,
    i,
    looped,
    num,
    refusal,
)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (BinOp("//", i, num(0)), "i // 0 divides by zero"),
        (BinOp("%", Load(N, (i,)), num(0)), "N[i] % 0 divides by zero"),
        (BinOp("<<", i, num(40)), "i << 40 shifts by 40 bits: expected 0 to 31"),
        (BinOp(">>", i, num(-1)), "i >> -1 shifts by -1 bits: expected 0 to 31"),
    ],
)
def test_operations_that_can_not_be_meant_are_refused(value: Expr, message: str) -> None:
    assert message in refusal(looped(Cast("float32", value))).message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (i, "buffer B holds float32, got int32"),
        (BinOp("+", ZERO, i), "operands of types float32 and int32"),
        (BinOp("%", ZERO, ZERO), "% does not take operands of type float32"),
        (Cast("float32", BinOp("/", i, i)), "/ does not take operands of type int32"),
        (Select(i, ZERO, ZERO), "expected a condition, got int32"),
        (at(ZERO), "an index of type float32"),
        (Call("exp", (i,), "int32"), "T.exp takes floating-point arguments"),
        (Call("exp", (ZERO,), "float64"), "T.exp returns float32 here"),
        (Call("expp", (ZERO,), "float32"), "unknown function expp"),
        (Load(A, (i, i)), "A has 1 dimension(s), got 2"),
        (Load(make_buffer("Z", (8,)), (i,)), "buffer Z is not declared here"),
        (Load(replace(A, dtype="float64"), (i,)), "buffer A is not declared here"),
        (Cast("float32", Var("q")), "variable q is not defined here"),
    ],
)
def test_ill_formed_expressions_are_refused(value: Expr, message: str) -> None:
    assert message in refusal(looped(value)).message


@pytest.mark.parametrize("op", ["//", "%", "<<", ">>"])
def test_operands_that_are_known_when_the_program_runs_may_be_anything(op: Any) -> None:
    verify(looped(Cast("float32", BinOp(op, num(100), Load(N, (i,))))))


def test_a_literal_must_fit_its_type() -> None:
    with pytest.raises(VerifyError, match="300 does not fit into int8"):
        verify(looped(Cast("float32", IntImm(300, "int8"))))
