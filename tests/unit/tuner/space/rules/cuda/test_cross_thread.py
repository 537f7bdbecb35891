"""Reductions by the threads of a block together."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import For
from compiler.ir.core.visit import walk
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, emulate, first, names


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


def test_threads_load_vectors_of_full_sectors() -> None:
    func = ops.sum(8, 512, axis=1)
    (report,) = emulate(func, first(func, "cross_thread"))
    assert report.sector_ratio == 1
    assert report.bytes_read == 4 * 8 * 512
    reads = [a for a in report.accesses if a.instruction.startswith("ld.global")]
    assert reads
    assert all(".v4." in a.instruction for a in reads)


@pytest.mark.parametrize("shape", [(64, 512), (1 << 15,)], ids=["rows", "one axis"])
def test_a_sum_of_everything_reads_each_element_once(shape: tuple[int, ...]) -> None:
    func = ops.sum(*shape)
    partial, whole = emulate(func, first(func, "cross_thread"))
    assert partial.num_blocks >= 32
    assert whole.num_blocks == 1
    assert partial.sector_ratio == whole.sector_ratio == 1
    # Blocks write sums side by side, each to a part of a sector.
    assert partial.global_bytes == partial.bytes_read + 32 * partial.num_blocks
