"""The parts of a parallel loop that leave cores idle."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import For, static_int
from compiler.ir.core.visit import walk_stmts
from tests.targets import level
from tuner.space.analysis.busy_cores import idle_counts
from tuner.space.generate import design_space
from tuner.task import Task


@pytest.mark.parametrize(
    ("extent", "cores", "idle"),
    [
        (1000, 1, []),
        (1000, 2, [1]),
        (1000, 8, [1, 2, 4, 5, 10]),
        (14, 8, []),  # seven of eight cores are enough, but leave tiles of two rows
        (13, 2, []),  # one part alone, or rows one by one
    ],
)
def test_few_or_uneven_parts_leave_cores_idle(extent: int, cores: int, idle: list[int]) -> None:
    assert idle_counts(extent, cores, 3, 30) == idle


@pytest.mark.parametrize("spec", ["matmul:1000,10,256", "matmul:2048,64,64"])
def test_no_candidate_of_a_product_leaves_a_core_idle(spec: str) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, level(4, 2)))
    (index,) = (n for n, s in enumerate(space.sketches) if s.name == "packed_right_whole")
    for choices in space.enumerate(index):
        trace = space.sketches[index].candidate(choices).trace
        loops = [n for n in walk_stmts(trace.apply_to(func).func.body) if isinstance(n, For)]
        parts = [static_int(loop.extent) for loop in loops if loop.kind == "parallel"]
        assert parts
        assert min(parts) > 1
