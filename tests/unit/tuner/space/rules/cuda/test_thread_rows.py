"""Chains of row reductions, a few rows a block."""

from __future__ import annotations

import pytest

from compiler import ops
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes, draw, names, space_of


@pytest.mark.parametrize("spec", ["softmax:8,77", "layer_norm:9,64", "log_softmax:2,3,33"])
def test_random_schedules_compute_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    assert names(func) == ["staged_rows", "rows"]
    assert_computes(func, [*draw(func, "staged_rows", 1), *draw(func, "rows", 1)])


def test_a_single_row_is_no_chain_of_rows() -> None:
    func = ops.from_spec("softmax:40")
    assert names(func) == ["cross_thread"]
    assert_computes(func, draw(func, "cross_thread", 1))


def test_rows_that_exceed_shared_memory_are_scheduled_one_by_one() -> None:
    # Two rows of this length need more shared memory than one block has, one does not.
    length = H200.limits.shared_bytes // 4 // 3
    space = space_of(ops.softmax(64, length))
    (rows,) = {tuple(sketch.knobs[0].options[:, 0]) for sketch in space.sketches}
    assert rows == (1,)
