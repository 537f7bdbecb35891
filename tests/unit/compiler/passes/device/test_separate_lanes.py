"""Lanes of vectors in comparisons: one condition for all of them, where it is the same."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    For,
    IntImm,
    Store,
    Var,
)
from compiler.ir.core.visit import walk
from compiler.passes.device.separate_lanes import separate_lanes
from tests.unit.tuner.space.features.exact_features import Ints, evaluate

LANES = 8
THREAD, LANE = Var("t"), Var("v")
TARGET = Buffer(Var("B", "handle"), (IntImm(64),), "int32")


def separated(condition: Expr) -> Expr:
    value = Conditional(condition, IntImm(1), IntImm(0))
    loop = separate_lanes(For(LANE, IntImm(LANES), Store(TARGET, (LANE,), value), "vectorized"))
    assert isinstance(loop, For)
    assert isinstance(loop.body, Store)
    new = loop.body.value
    return new.condition if isinstance(new, Conditional) else new


def holds(condition: Expr, values: dict[Var, Ints]) -> bool:
    assert isinstance(condition, Compare)
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    sides = (evaluate(side, values) for side in (condition.lhs, condition.rhs))
    return bool(compare[condition.op](*sides))


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("is_mirrored", [False, True])
def test_a_condition_holds_for_the_same_lanes_as_before(op: CompareOp, is_mirrored: bool) -> None:
    position = BinOp("+", BinOp("*", THREAD, IntImm(LANES)), LANE)
    num_uniform = 0
    for limit in range(20, 37):
        sides = (position, IntImm(limit))
        old = Compare(op, *(sides[::-1] if is_mirrored else sides))
        new = separated(old)
        num_uniform += LANE not in set(walk(new))
        for thread in range(8):
            for lane in range(LANES):
                values = {THREAD: np.asarray(thread), LANE: np.asarray(lane)}
                assert holds(new, values) == holds(old, values)
    # 24 and 32, or the numbers beside them.
    assert num_uniform == 2


def test_a_limit_within_a_vector_is_compared_by_each_lane() -> None:
    odd = BinOp("+", BinOp("*", THREAD, IntImm(LANES // 2)), LANE)
    for position in (odd, BinOp("*", LANE, IntImm(2)), BinOp("//", LANE, IntImm(2))):
        condition = Compare("<", position, IntImm(16))
        assert separated(condition) == condition
