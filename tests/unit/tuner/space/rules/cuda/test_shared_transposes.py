"""Transposes in tiles of shared memory."""

from __future__ import annotations

import pytest

from compiler import ops
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, emulate, first, names


@pytest.mark.parametrize("spec", ["transpose:33,65", "transpose:64,32"])
def test_random_schedules_compute_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    assert names(func) == ["transposed"]
    assert_computes(func, draw(func, "transposed", 2))


def test_each_element_moves_once_in_whole_sectors_without_bank_conflicts() -> None:
    func = ops.transpose(64, 96)
    (report,) = emulate(func, first(func, "transposed"))
    assert report.sector_ratio == report.bank_conflicts == 1
    assert report.global_bytes == 2 * 4 * 64 * 96
