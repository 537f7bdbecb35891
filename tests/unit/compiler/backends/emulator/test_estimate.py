"""Estimates of times: bounds that follow from the counts, and the order of kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.estimate import LAUNCH_SECS, estimate_time
from compiler.backends.emulator.report import EmulationReport
from compiler.target.gpus import GPUS

H200 = GPUS["h200"]
COPY = """
extern "C" __global__ void copy(const float4* a, float4* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i];
}
extern "C" __global__ void strided(const float* a, float* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i % 64 * 64 + i / 64];
}
"""


def report_of(instructions: dict[InstructionClass, int], blocks: int) -> EmulationReport:
    return EmulationReport(
        kernel="k",
        grid=(blocks, 1, 1),
        block=(256, 1, 1),
        num_blocks=blocks,
        faults=(),
        instructions=instructions,
        accesses=(),
        matrix_operations={},
        bytes_transferred=0,
        bytes_read=0,
        bytes_written=0,
    )


def test_float32_arithmetic_takes_the_time_of_the_peak_rate() -> None:
    blocks = 132 * 8 * 10
    fmas = 8 * 10**5 * blocks
    estimate = estimate_time(report_of({InstructionClass.FMA: fmas}, blocks), H200, 32, 0)
    assert estimate.secs == pytest.approx(LAUNCH_SECS + 64 * fmas / H200.peaks["float32"])
    assert (estimate.rounds, estimate.occupancy) == (10, 1)
    assert estimate.bound == "fma"


def test_a_block_more_than_fits_costs_a_round() -> None:
    def secs(blocks: int) -> float:
        return estimate_time(
            report_of({InstructionClass.FMA: 10**6 * blocks}, blocks), H200, 32, 0
        ).secs

    assert secs(132 * 8 + 1) > 1.9 * secs(132 * 8)


@pytest.mark.parametrize(("name", "share"), [("wgmma.bf16", 1), ("mma.bf16", 0.64)])
def test_matrix_products_take_the_time_of_the_tensor_cores(name: str, share: float) -> None:
    operations = 10**12 * 132
    report = replace(report_of({}, 132), matrix_operations={name: operations})
    estimate = estimate_time(report, H200, 168, 0)
    assert estimate.secs == pytest.approx(operations / H200.peaks["bfloat16"] / share, rel=1e-3)


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_cuda(COPY, "sm_90a").ptx


def test_a_copy_is_bound_by_the_memory_even_if_some_blocks_run(ptx: str) -> None:
    # Addresses of the blocks that do not run need no memory.
    a, b = np.ones((4 * 256, 4), np.float32), np.zeros((4 * 256, 4), np.float32)
    report = emulate(ptx, "copy", (1 << 18, 1, 1), (256, 1, 1), [a, b], blocks=range(4))
    assert not report.faults, report
    estimate = estimate_time(report, H200, 16, 0)
    moved = 2 * 16 * 256 * 2**18
    assert estimate.bound == "memory"
    assert estimate.secs == pytest.approx(LAUNCH_SECS + moved / (0.9 * 4.8e12))


def test_accesses_that_are_not_coalesced_take_longer(ptx: str) -> None:
    a, b = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    arguments = [a, b]
    report = emulate(ptx, "strided", (16, 1, 1), (256, 1, 1), arguments)
    ideal = replace(report, accesses=tuple(replace(x, units=x.ideal) for x in report.accesses))
    units = [estimate_time(each, H200, 16, 0).by_unit for each in (report, ideal)]
    assert units[0]["second-level cache"] == pytest.approx(4.5 * units[1]["second-level cache"])
