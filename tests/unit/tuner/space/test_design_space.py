"""Candidates of design spaces: correct, distinct, and found again."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.nodes import (
    Load,
    Store,
)
from compiler.ir.core.visit import walk
from compiler.target.cpu import CpuTarget
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import space_of
from tuner.candidate import default_candidate
from tuner.space.analysis.block_facts import sites
from tuner.space.design_space import Point, distinct
from tuner.space.filter.static_filter import passes

PROGRAMS = [
    "matmul:24,32,20",
    "matmul:1,32,8",
    "matmul:7,13,11",
    "matmul_bias_relu:16,24,8",
    "mm_relu:16,16,16",
    "dense:16,24,8",
    "batch_matmul:3,8,16,4",
    "conv2d:1,4,8,8,8,3,1,1",
    "conv2d:1,3,11,11,4,3,2,1",
    "conv2d:1,8,6,6,8,3,1,1,1,2",
    "depthwise_conv2d:1,4,10,10,3,1,1",
    "row_sum:24,40",
    "softmax:12,40",
    "softmax:7",  # its only loop is of a sum: none can run in parallel
    "layer_norm:8,24",
    "transpose:24,18",
    "add:12,30",
    "relu:96",
]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", PROGRAMS)
def test_every_candidate_builds_and_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = space_of(func, here(num_cores))
    assert space.sketches, "a rule applies to each of these"
    check_candidates(func, space, each=2)


@pytest.mark.parametrize("spec", ["matmul:32,32,32", "relu:64,64", "conv2d:1,4,8,8,8,3,1,1"])
def test_loops_are_parallel_only_on_several_cores(spec: str) -> None:
    func = ops.from_spec(spec)

    def uses(target: CpuTarget) -> list[bool]:
        sketches = space_of(func, target).sketches
        return [any(i.name == "parallel" for i in s.trace.instructions) for s in sketches]

    assert not any(uses(level(3)))
    assert all(uses(level(3, num_cores=2)))


def test_facts_of_the_program_stay_true_in_every_sketch() -> None:
    """Inlining and caching must not leave the tables with other accesses than the program's."""
    func = ops.matmul_bias_relu(16, 24, 8)
    sketch = space_of(func).sketches[-1]
    scheduled = sketch.trace.apply_to(func).func
    (update,) = (s for s in sites(scheduled) if s.block.name.endswith("_update"))
    store = update.block.body
    assert isinstance(store, Store)
    loaded = {n.buffer.name for n in walk(store.value) if isinstance(n, Load)}
    assert {r.buffer for r in sketch.nests[0].facts.reads} == loaded - {store.buffer.name}


def test_candidates_and_points_translate_into_each_other() -> None:
    space = space_of(ops.conv2d(1, 4, 8, 8, 8, 3, 1, 1))
    rng = np.random.default_rng(0)
    for index in range(len(space.sketches)):
        for row in space.draw(index, 5, rng).tolist():
            point = Point(index, tuple(row))
            assert space.point(space.candidate(point)) == point


def test_a_candidate_of_another_space_has_no_point() -> None:
    space = space_of(ops.matmul(32, 32, 32))
    other = space_of(ops.matmul(24, 32, 20))
    rng = np.random.default_rng(0)
    foreign = other.candidate(Point(2, tuple(other.draw(2, 1, rng)[0].tolist())))
    assert space.point(foreign) is None
    assert space.point(default_candidate()) is None


def test_draws_are_different_and_pass_the_filter() -> None:
    space = space_of(ops.conv2d(1, 8, 14, 14, 16, 3, 1, 1))
    for index, sketch in enumerate(space.sketches):
        rows = space.draw(index, 100, np.random.default_rng(0))
        assert len(rows) == min(100, space.count(index).number)
        assert len(distinct(rows)) == len(rows)
        assert passes(sketch, rows, CpuTarget.of(space.target)).all()
        assert (space.canonical(index, rows) == rows).all()


def test_a_small_sketch_is_drawn_until_it_is_empty() -> None:
    space = space_of(ops.relu(96))
    (sketch,) = space.sketches
    rows = space.draw(0, 1000, np.random.default_rng(0))
    every = np.arange(sketch.size)[:, None]
    assert (
        sorted(rows.tolist()) == every[passes(sketch, every, CpuTarget.of(space.target))].tolist()
    )


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", ["relu:33,77", "relu:16,20,3", "add:7,9", "relu:5,1,33"])
def test_ragged_rows_are_correct(spec: str, num_cores: int) -> None:
    test_every_candidate_builds_and_is_correct(spec, num_cores)
