"""Sums of columns: parts of them in one kernel, their sums in another one."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, emulate, first, names


@pytest.mark.parametrize(
    "func",
    [ops.max(64, 9, axis=0), ops.sum(4, 64, 33, axis=(0, 1))],
    ids=["one axis", "two axes"],
)
def test_random_schedules_compute_the_program(func: PrimFunc) -> None:
    assert names(func) == ["split_sums", "flat"]
    assert_computes(func, draw(func, "split_sums", 1))


def test_parts_have_more_threads_than_columns_and_read_whole_sectors() -> None:
    func = ops.sum(128, 64, axis=0)
    partial, whole = emulate(func, first(func, "split_sums"))
    assert partial.grid[0] * partial.block[0] == 4 * 64
    assert partial.sector_ratio == whole.sector_ratio == 1
    assert partial.global_bytes == 4 * (128 + 4) * 64
    assert whole.global_bytes == 4 * (4 + 1) * 64


@pytest.mark.parametrize(
    "func",
    [ops.sum(32, 64, axis=0), ops.sum(64, 1 << 17, axis=0), ops.relu(64, 64)],
    ids=["short", "many columns", "no sum"],
)
def test_other_blocks_are_left_alone(func: PrimFunc) -> None:
    assert names(func) == ["flat"]
