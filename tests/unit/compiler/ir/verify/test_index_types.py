"""Arithmetic on indices that leaves its type."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    BinOp,
)
from tests.unit.compiler.ir.verify.small_programs import (
    at,
    i,
    looped,
    num,
    refusal,
)


def test_index_arithmetic_that_wraps_around_is_refused() -> None:
    big = BinOp("*", BinOp("*", i, num(100_000)), num(100_000))
    error = refusal(looped(at(BinOp("-", big, big))))
    assert "which does not fit into int32" in error.message
