"""Which combinations of values are reducers, and that they combine as the block does."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.core.nodes import BinOp, Block, FloatImm
from tests.unit.compiler.schedule.legality.positions import placed, program

PARAMS = 'A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")'


def block(start: str, update: str) -> Block:
    func = program(
        f"""
for i, k in T.grid(4, 8):
    with T.sblock("B"):
        v, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[v] = {start}
        B[v] = {update}
""",
        PARAMS,
    )
    return placed(func, "B")[1].block


@pytest.mark.parametrize(
    ("start", "update", "result"),
    [
        ("T.float32(0)", "B[v] + A[v, vk]", 5.0),
        ("T.float32(0)", "A[v, vk] + B[v]", 5.0),
        ("T.float32(1)", "B[v] * A[v, vk]", 6.0),
        ("T.float32('-inf')", "T.max(B[v], A[v, vk])", 3.0),
        ("T.float32('inf')", "T.min(B[v], A[v, vk])", 2.0),
        ("T.float32(0)", "B[v] + A[v, vk] * A[v, vk]", 5.0),
    ],
)
def test_sums_products_and_extremes_are_reducers(start: str, update: str, result: float) -> None:
    form = reduction_of(block(start, update))
    assert isinstance(form, ReductionForm)
    assert form.reducer.is_commutative
    two, three = FloatImm(2.0), FloatImm(3.0)
    for lhs, rhs in ((two, three), (three, two)):
        (combined,) = form.reducer((lhs,), (rhs,))
        assert isinstance(combined, BinOp)
        assert {"+": 5.0, "*": 6.0, "max": 3.0, "min": 2.0}[combined.op] == result
        assert {combined.lhs, combined.rhs} == {two, three}


@pytest.mark.parametrize(
    ("start", "update", "reason"),
    [
        ("T.float32(0)", "B[v] - A[v, vk]", "known commutative reducer"),
        ("T.float32(0)", "A[v, vk]", "known commutative reducer"),
        ("T.float32(0)", "B[v] + B[v] * A[v, vk]", "known commutative reducer"),
    ],
)
def test_other_updates_have_a_reason(start: str, update: str, reason: str) -> None:
    form = reduction_of(block(start, update))
    assert isinstance(form, str)
    assert reason in form
