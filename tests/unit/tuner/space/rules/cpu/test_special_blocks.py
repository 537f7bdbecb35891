"""Reductions to several buffers and scans run in vectors, and find what they did."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.nodes import (
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from tests.targets import here, level
from tests.unit.tuner.candidates import computed
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.task import Task

BLOCKS = {
    "along rows": ops.argmax(5, 33, axis=1),
    "along even rows": ops.argmin(6, 64, axis=1),
    "along prime rows": ops.argmax(4, 37, axis=1),
    "along many rows, a prime number": ops.argmax(131, 37, axis=1),
    "of many short rows": ops.argmin(131, 5, axis=1),
    "of short rows in two axes": ops.argmax(3, 37, 5, axis=2),
    "along contiguous axes": ops.argmin(5, 7, 9, axis=(1, 2)),
    "across rows": ops.argmax(64, 6, axis=0),
    "across prime rows": ops.argmax(7, 37, axis=0),
    "in the middle": ops.argmin(3, 16, 24, axis=1),
    "of two axes": ops.argmax(4, 5, 16, axis=(1, 2)),
    "of all": ops.argmax(64),
    "scan along rows": ops.cumsum(3, 24),
    "scan along prime rows": ops.cumsum(2, 3, 37),
    "scan across prime rows": ops.cumsum(7, 37, axis=0),
    "scan across rows": ops.cumsum(12, 24, axis=0),
    "scan in the middle": ops.cumsum(3, 5, 24, axis=1),
}


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("func", BLOCKS.values(), ids=BLOCKS.keys())
def test_special_blocks_are_correct(func: PrimFunc, num_cores: int) -> None:
    looked_at = design_space(Task(func, level(3, num_cores)))
    assert [sketch.name for sketch in looked_at.sketches] == ["special"]
    # Few different numbers: of equal ones, the first counts.
    shape = static_shape(func.buffers[0])
    numbers = np.random.default_rng(0).integers(-3, 3, shape).astype(np.float32)
    expected = interpret(func, {**random_inputs(func, 0), "A": numbers})
    space = design_space(Task(func, here(num_cores)))
    drawn = space.draw(0, 3, np.random.default_rng(0))
    assert np.isfinite(space.features(0, drawn)).all()
    for choices in drawn:
        found = computed(func, space.sketches[0].candidate(choices), space.target, {"A": numbers})
        compare(func, {"B": found["B"]}, expected)


def test_each_search_of_a_topk_runs_in_lanes() -> None:
    func = ops.topk(3, 67, k=3)
    space = design_space(Task(func, here()))
    number = [sketch.name for sketch in space.sketches].index("special")
    choices = space.draw(number, 1, np.random.default_rng(0))[0]
    candidate = space.sketches[number].candidate(choices)
    program = candidate.trace.apply_to(func).func
    lanes = [loop for site in sites(program) for loop in site.loops if dict(loop.annotations)]
    assert len(lanes) == 3
    numbers = np.random.default_rng(0).integers(-3, 3, (3, 67)).astype(np.float32)
    found = computed(func, candidate, space.target, {"A": numbers})
    order = np.argsort(-numbers, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(found["indices"], order)
    np.testing.assert_array_equal(found["values"], np.take_along_axis(numbers, order, 1))


@pytest.mark.parametrize(
    "func",
    [ops.argmax(4, 7, axis=1), ops.cumsum(3, 7)],
    ids=["short rows", "scan along short rows"],
)
def test_where_no_axis_suits_vectors_there_is_no_such_sketch(func: PrimFunc) -> None:
    assert "special" not in {s.name for s in design_space(Task(func, level(3))).sketches}
