"""Chains of row reductions, a few rows a block."""

from __future__ import annotations

from math import prod

import pytest

from compiler import ops
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from tests.unit.tuner.space.gpu_spaces import (
    H200,
    assert_computes,
    draw,
    emulate,
    first,
    names,
    space_of,
)


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


@pytest.mark.parametrize(
    "func", [ops.softmax(4, 504), ops.rms_norm(4, 384)], ids=["softmax", "rms"]
)
def test_staged_rows_are_read_once_and_written_once_in_vectors(func: PrimFunc) -> None:
    (report,) = emulate(func, first(func, "staged_rows"))
    assert report.sector_ratio == report.bank_conflicts == 1
    accesses = [a for a in report.accesses if a.memory == "global"]
    assert all(".v4." in a.instruction for a in accesses)
    # Each block of threads reads the weights, which all rows share.
    weights = sum(4 * prod(static_shape(b)) for b in func.buffers if len(b.shape) == 1)
    rows = 2 * 4 * prod(static_shape(func.buffers[0]))
    assert report.global_bytes == rows + report.num_blocks * weights
