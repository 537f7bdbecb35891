"""Chains of products on tensor cores: attention of 16-bit floats."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.report import EmulationReport
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.unit.tuner.space.gpu_spaces import (
    H200,
    assert_computes,
    emulate,
    schedule_of,
    sketch_of_rule,
)
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.tensor_attention import TensorAttention
from tuner.space.rules.sketch_builder import SketchBuilder


def on_tensor_cores(func: PrimFunc) -> Schedule:
    """Return the first schedule of the rule."""
    return schedule_of(sketch_of_rule(TensorAttention(), func), func)


@pytest.mark.parametrize(
    "func",
    [
        ops.attention(1, 1, 32, 64, 128, dtype="bfloat16"),
        ops.attention(1, 2, 32, 96, 32, dtype="float16", causal=True),
    ],
    ids=["bfloat16", "float16, causal"],
)
def test_the_first_schedule_computes_the_program(func: PrimFunc) -> None:
    assert_computes(func, [on_tensor_cores(func)])


@pytest.fixture(scope="module")
def report() -> EmulationReport:
    """The report of attention over two pieces of keys, in two blocks."""
    func = ops.attention(1, 1, 32, 64, 64, dtype="float16")
    (report,) = emulate(func, on_tensor_cores(func))
    return report


def test_tensor_cores_compute_both_products(report: EmulationReport) -> None:
    assert report.matrix_operations == {"mma.f16": 2 * 2 * 32 * 64 * 64}


def test_shared_memory_has_no_bank_conflicts(report: EmulationReport) -> None:
    assert report.bank_conflicts == 1


def test_operands_are_copied_in_16_bytes_while_instructions_run(report: EmulationReport) -> None:
    assert report.instructions[InstructionClass.ASYNC_COPY] > 0
    accesses = [a for a in report.accesses if a.memory == "global"]
    reads = [a for a in accesses if "st.global" not in a.instruction]
    assert all(a.ratio == 1 for a in reads)
    assert all("v4" in a.instruction or ".cg." in a.instruction for a in reads)


def test_each_block_reads_the_keys_and_values_once(report: EmulationReport) -> None:
    of_rows, of_keys = 2 * 32 * 64, 2 * 64 * 64
    read = of_rows + report.num_blocks * 2 * of_keys
    # Fragments hold pairs of neighbours: their stores fill half of each sector at a time.
    assert report.global_bytes == read + 2 * of_rows


@pytest.mark.parametrize(
    "func",
    [
        ops.attention(1, 1, 32, 32, 32),  # tf32 would round the operands
        ops.attention(1, 1, 32, 40, 32, dtype="float16"),  # no whole tiles
        ops.attention(1, 1, 32, 8192, 32, dtype="float16"),  # rows exceed shared memory
    ],
    ids=["float32", "ragged", "long"],
)
def test_other_chains_are_left_alone(func: PrimFunc) -> None:
    draft = SketchBuilder.begin(func, H200)
    AutoInline().apply(draft)
    assert TensorAttention().apply(draft) == [draft]
