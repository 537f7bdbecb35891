"""Sums over rows of different lengths end where the row does."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import Conditional, For, If, IntImm
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.interpret.oracle.oracle import random_inputs
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates, computed
from tests.unit.tuner.space.spaces import names
from tuner.space.generate import design_space
from tuner.task import Task

BAGS = {
    "sum": "embedding_bag:40,32,9,8,total=50",
    "mean": "embedding_bag:40,33,9,7,total=50,mode=mean",
    "weights": "embedding_bag:40,24,9,6,total=50,weights=true",
    "narrow": "embedding_bag:40,16,9,8,total=50:bfloat16",
}
OFFSETS = {
    "bags of every length": [0, 3, 3, 11, 12, 20, 27, 33, 41, 50],
    "a bag beyond the greatest length": [0, 0, 0, 30, 31, 32, 33, 34, 35, 50],
    "offsets out of order and out of range": [-5, 7, 2, 2, 60, 49, 50, 2**30, -(2**30), 4],
}


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("name", BAGS)
def test_every_candidate_is_correct(name: str, num_cores: int) -> None:
    func = ops.from_spec(BAGS[name])
    space = design_space(Task(func, here(num_cores)))
    assert [sketch.name for sketch in space.sketches] == ["ragged"]
    check_candidates(func, space, [0], each=3)


@pytest.mark.parametrize("offsets", OFFSETS)
def test_bags_end_where_the_reference_says(offsets: str) -> None:
    spec = BAGS["sum"]
    func = ops.from_spec(spec)
    space = design_space(Task(func, here()))
    inputs = random_inputs(func, 0) | {"offsets": np.array(OFFSETS[offsets], np.int32)}
    expected = ops.reference(spec)(*inputs.values())
    for choices in space.draw(0, 3, np.random.default_rng(0)):
        candidate = space.sketches[0].candidate(choices)
        arrays = computed(func, candidate, space.target, inputs)
        np.testing.assert_allclose(arrays["B"], expected, rtol=1e-5, atol=1e-6)


def test_a_loop_runs_to_the_end_of_a_bag_and_tests_nothing() -> None:
    func = ops.from_spec(BAGS["sum"])
    space = design_space(Task(func, level(3)))
    traces = [space.sketches[0].candidate(row).trace for row in space.enumerate(0)]
    single = next(trace for trace in traces if "decision=0" in str(trace))  # one step a test
    body = lower(single.apply_to(func).func, space.target)
    loops = [node for node in walk_stmts(body) if isinstance(node, For)]
    assert sum(not isinstance(loop.extent, IntImm) for loop in loops) == 1
    assert not any(isinstance(node, Conditional | If) for node in walk(body))


@pytest.mark.parametrize("bags", [1, 2])
def test_lanes_do_not_cross_bags_of_tables_with_one_column(bags: int) -> None:
    """The contiguous axis of the output is then that of the bags, which end at other steps."""
    func = ops.from_spec(f"embedding_bag:5,1,{bags},3,index_dtype=int64,total=20")
    space = design_space(Task(func, here(1)))
    check_candidates(func, space, range(len(space.sketches)), each=3)


def test_other_sums_are_tiled() -> None:
    assert "ragged" not in names(ops.from_spec("embedding_bag:40,32,9,8"))
    assert "ragged" not in names(ops.conv2d(1, 4, 8, 8, 6, 3, 1, 1))
