"""Programs that are too large or too deep."""

from __future__ import annotations

import pytest

from compiler.ir.core.limits import MAX_DEPTH
from compiler.ir.core.nodes import (
    BinOp,
    Expr,
    For,
    Store,
    make_buffer,
)
from tests.unit.compiler.ir.verify.small_programs import (
    ZERO,
    B,
    func_of,
    i,
    looped,
    num,
    refusal,
)


@pytest.mark.parametrize("extent", [0, -1, 2**31])
def test_extents_must_be_in_range(extent: int) -> None:
    loop = For(i, num(extent), Store(B, (num(0),), ZERO))
    assert f"an extent of loop i is {extent}" in refusal(func_of(loop)).message


def test_sizes_are_limited() -> None:
    large = [make_buffer(f"L{n}", (1 << 30,)) for n in range(5)]
    store = Store(B, (num(0),), ZERO)
    assert "more than 17179869184 bytes" in refusal(func_of(store, *large)).message
    larger = make_buffer("L", (1 << 30, 2))
    assert "has 8589934592 bytes" in refusal(func_of(store, larger)).message


def test_deep_and_long_programs_are_refused_without_exhausting_the_stack() -> None:
    value: Expr = ZERO
    for _ in range(100_000):
        value = BinOp("+", value, ZERO)
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal(looped(value)).message
    shared: Expr = ZERO
    for _ in range(60):
        shared = BinOp("+", shared, shared)
    assert "more than 50000 operations" in refusal(looped(shared)).message
