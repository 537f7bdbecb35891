"""Attention with blocks of keys on tensor cores."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.report import EmulationReport
from compiler.ir.core.program import PrimFunc
from tests.unit.tuner.space.gpu_spaces import (
    H200,
    assert_computes,
    emulate,
    schedule_of,
    sketch_of_rule,
)
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.online_tensor_attention import OnlineTensorAttention
from tuner.space.rules.sketch_builder import SketchBuilder

RULE = OnlineTensorAttention()


@pytest.mark.parametrize(
    ("func", "seed"),
    [
        (ops.attention(1, 1, 32, 96, 32, dtype="float16", causal=True), None),
        (ops.attention(1, 2, 64, 32, 32, dtype="float16"), 2),
        (ops.attention(1, 1, 256, 32, 32, dtype="bfloat16"), 4),
        (ops.attention(1, 1, 32, 64, 32, dtype="float8_e4m3fn"), None),
    ],
    ids=[
        "causal, float16",
        "two heads, float16",
        "two tiles of rows of a warp, bfloat16",
        "weights in shared memory",
    ],
)
def test_schedules_compute_the_program(func: PrimFunc, seed: int | None) -> None:
    assert_computes(func, [schedule_of(sketch_of_rule(RULE, func), func, seed)])


def test_blocks_of_keys_later_than_all_queries_are_skipped() -> None:
    func = ops.attention(1, 2, 64, 96, 32, dtype="bfloat16", causal=True)
    (report,) = emulate(func, schedule_of(sketch_of_rule(RULE, func), func))
    computed = 2  # blocks of 32 keys, of three: all 64 queries are in one tile
    assert report.matrix_operations == {"mma.bf16": 2 * 2 * 2 * 64 * computed * 32 * 32}


@pytest.fixture(scope="module")
def report() -> EmulationReport:
    """The report of attention over three blocks of keys."""
    func = ops.attention(1, 1, 32, 192, 32, dtype="bfloat16")
    (report,) = emulate(func, schedule_of(sketch_of_rule(RULE, func), func))
    return report


def test_tensor_cores_compute_both_products(report: EmulationReport) -> None:
    assert report.matrix_operations == {"mma.bf16": 2 * 2 * 32 * 192 * 32}


def test_blocks_of_keys_are_copied_while_the_last_one_is_computed(report: EmulationReport) -> None:
    assert report.instructions[InstructionClass.ASYNC_COPY] > 0
    read, written = 2 * 32 * 32 + 2 * 2 * 192 * 32, 2 * 32 * 32
    assert report.global_bytes == read + 2 * written  # pairs of results fill half of a sector


def test_operands_are_read_without_bank_conflicts(report: EmulationReport) -> None:
    reads = [a for a in report.accesses if "ldmatrix" in a.instruction]
    assert reads
    assert all(access.ratio == 1 for access in reads)


def test_scores_and_weights_stay_in_registers(report: EmulationReport) -> None:
    queries = 2 * 32 * 32 // (32 * 16)  # copies of 16 bytes by each lane of a warp
    assert report.instructions[InstructionClass.SHARED_STORE] == queries
    assert InstructionClass.SHARED_LOAD not in report.instructions
    # Each of two warps meets one before the first copies, and then one for each block of keys.
    assert report.instructions[InstructionClass.BARRIER] == 2 * (1 + 3)
    of_rows = 2 * 2 * 2  # the maxima and totals of 8 rows each, by two exchanges
    assert report.instructions[InstructionClass.WARP] == 2 * 3 * of_rows


def test_any_number_of_keys_fits() -> None:
    func = ops.attention(1, 1, 64, 1 << 15, 128, dtype="float16")
    assert sketch_of_rule(RULE, func).size > 1


@pytest.mark.parametrize(
    "func",
    [
        ops.attention(1, 1, 32, 32, 32),  # tf32 would round the operands
        ops.attention(1, 1, 32, 40, 32, dtype="float16"),  # no whole tiles
        ops.softmax(32, 64),
    ],
    ids=["float32", "ragged", "softmax"],
)
def test_other_chains_are_left_alone(func: PrimFunc) -> None:
    draft = SketchBuilder.begin(func, H200)
    AutoInline().apply(draft)
    assert OnlineTensorAttention().apply(draft) == [draft]
