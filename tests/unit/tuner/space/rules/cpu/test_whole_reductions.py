"""Cores share a reduction to a single element, each part of it in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import (
    For,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.task import Task


@pytest.mark.parametrize(
    "func",
    [ops.sum(512, 128), ops.max(1 << 16), ops.mean(64, 32, 33), ops.sum(1 << 15, dtype="int32")],
    ids=["rows", "a vector", "with a division", "integers"],
)
def test_parts_are_right_and_run_in_lanes(func: PrimFunc) -> None:
    check_candidates(func, design_space(Task(func, here(2))), each=3)
    space = design_space(Task(func, level(3, num_cores=2)))
    assert [sketch.name for sketch in space.sketches] == ["parts"]
    for choices in space.draw(0, 3, np.random.default_rng(0)):
        scheduled = space.sketches[0].candidate(choices).trace.apply_to(func)
        loops = [n for n in walk_stmts(lower(scheduled.func, space.target)) if isinstance(n, For)]
        assert any(loop.kind == "parallel" for loop in loops)
        assert any(loop.var.name == "lane" for loop in loops)


@pytest.mark.parametrize(
    ("func", "num_cores"),
    [(ops.sum(512, 128), 1), (ops.sum(64), 2), (ops.row_sum(512, 128), 2)],
    ids=["one core", "little work", "rows that stay"],
)
def test_others_are_not_shared_so(func: PrimFunc, num_cores: int) -> None:
    assert "parts" not in {s.name for s in design_space(Task(func, level(3, num_cores))).sketches}
