"""Attention with blocks of keys, without tensor cores."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.backends.emulator.report import EmulationReport
from compiler.ir.core.program import PrimFunc
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.gpu_spaces import (
    H200,
    assert_computes,
    emulate,
    schedule_of,
    sketch_of_rule,
)
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.rules.cuda.online_attention import OnlineAttention
from tuner.space.rules.sketch_builder import SketchBuilder

RULE = OnlineAttention()
RAGGED = ops.attention(1, 1, 10, 70, 8)
"""Neither rows nor keys fill their blocks."""


@pytest.mark.parametrize(
    ("func", "seed"),
    [(RAGGED, None), (ops.attention(1, 2, 20, 40, 12, causal=True), 1)],
    ids=["ragged", "causal, at random"],
)
def test_schedules_compute_the_program(func: PrimFunc, seed: int | None) -> None:
    assert_computes(func, [schedule_of(sketch_of_rule(RULE, func), func, seed)])


@pytest.fixture(scope="module")
def report() -> EmulationReport:
    """The report of one block of rows, over two blocks of keys."""
    func = ops.attention(1, 1, 32, 128, 16)
    (report,) = emulate(func, schedule_of(sketch_of_rule(RULE, func), func))
    return report


def test_each_operand_is_read_once_in_whole_sectors(report: EmulationReport) -> None:
    assert report.global_bytes == 4 * 16 * (2 * 32 + 2 * 128)


def test_shared_memory_has_few_bank_conflicts(report: EmulationReport) -> None:
    assert report.bank_conflicts < 1.1


@pytest.mark.parametrize("seed", [None, 3], ids=["first", "at random"])
def test_tables_are_those_of_the_lowered_kernel(seed: int | None) -> None:
    func = ops.attention(1, 2, 64, 192, 32)
    sketch = sketch_of_rule(RULE, func)
    choices = np.zeros((1, len(sketch.knobs)), np.int64)
    if seed is not None:
        choices = sketch.draw(1, np.random.default_rng(seed))
    schedule = sketch.candidate(choices[0]).trace.apply_to(func)
    (kernel,) = lower_for_device(schedule.func, H200.limits).kernels
    (report,) = emulate(func, schedule)
    batch = CudaBatch(sketch, choices, H200)
    for tables in batch.kernels:
        assert tables.threads[0] == np.prod(kernel.block)
        assert tables.blocks[0] == np.prod(kernel.grid)
    assert batch.num_launches == 1
    issued = sum(time.issued_bytes[0] for time in batch.times)
    # The rows of queries are copied once; the table counts them for each block of keys.
    assert report.global_bytes <= issued <= 1.5 * report.global_bytes
    assert 0.5 * kernel.shared_bytes <= batch.kernel.shared_bytes[0] <= 2 * kernel.shared_bytes


def test_estimates_order_candidates_below_the_peak() -> None:
    sketch = sketch_of_rule(RULE, ops.attention(1, 8, 4096, 4096, 64))
    choices = sketch.draw(64, np.random.default_rng(0))
    choices = choices[CUDA_SPACE.passes(sketch, choices, H200)]
    rates = 4 * 8 * 4096 * 4096 * 64 / CudaBatch(sketch, choices, H200).secs
    assert len(np.unique(rates)) > 8
    assert 67e12 / 4 < rates.max() < 67e12  # of float32


def test_any_number_of_keys_fits() -> None:
    assert sketch_of_rule(RULE, ops.attention(1, 1, 64, 1 << 15, 128)).size > 1


def test_a_softmax_without_products_is_left_alone() -> None:
    draft = SketchBuilder.begin(ops.softmax(32, 64), H200)
    assert OnlineAttention().apply(draft) == [draft]
