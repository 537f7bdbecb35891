"""Reductions by the threads of a block together."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import For
from compiler.ir.core.visit import walk
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, names


@pytest.mark.parametrize(
    "spec", ["row_sum:9,77", "linear_relu:1,20,64", "mean:4,5,33", "max:31,8", "sum:256,130"]
)
def test_random_schedules_compute_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    assert names(func) == ["cross_thread"]
    assert_computes(func, draw(func, "cross_thread", 1))


def test_a_large_sum_runs_on_many_blocks_before_one() -> None:
    func = ops.sum(512, 512)
    (schedule,) = draw(func, "cross_thread", 1)
    grids = [n for n in walk(schedule.func.body) if isinstance(n, For) and n.thread == "blockIdx.x"]
    assert len(grids) == 1
    assert "B_rf" in schedule.func.script()
