"""An estimate of the time of a kernel on a GPU, from what the emulator counted.

A multiprocessor runs rounds of blocks. A round lasts as long as the busiest of its units, or as
long as the waits of one block. The kernel lasts as long as its rounds or its memory traffic, which
overlap. It knows neither caches between blocks nor the schedule of instructions: it orders kernels
by their work, and is never a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.report import EmulationReport
from compiler.target.gpus import ARCHS, WARP_SIZE, Gpu
from compiler.target.matrix_rates import matrix_rate
from compiler.target.occupancy import occupancy

NUM_SCHEDULERS = 4
"""Each of the four parts of a multiprocessor issues an instruction of one warp in a cycle."""
LAUNCH_SECS = 2.5e-6
"""The time from the start of a kernel to that of the next one, without its work. An estimate."""
COPY_SHARE = 0.9
"""The share of a data sheet's memory bandwidth that copies reach: 4.3 of 4.8 TB/s on an H200."""
L2_BYTES_PER_CYCLE = 32
"""Bytes a cycle from the second-level cache to a multiprocessor: half of the 64 that the ports are
wide. An estimate.
"""
MEMORY_SECS = 600e-9
"""The latency of a load from memory under load: published microbenchmarks of Hopper find about 480
to 800 cycles, and 600 ns with queues. An estimate.
"""
LOADS_IN_FLIGHT = 4
"""Loads of a warp that are under way together. NVRTC unrolls loops by four."""
BARRIER_SECS = 20e-9
"""The time that a barrier costs the warps of a block: some 30 cycles. An estimate."""

# Lanes of a multiprocessor in a cycle (CUDA C++ Programming Guide, "Arithmetic Instructions").
_FP32_LANES = {"sm_80": 64}
_OTHER_FP32_LANES = 128
_LANES = {
    InstructionClass.INTEGER: 64,
    InstructionClass.CONVERT: 64,
    InstructionClass.SPECIAL: 16,
    InstructionClass.WARP: 32,
}
_DOUBLE_LANES = {"sm_80": 32, "sm_90": 64, "sm_90a": 64, "sm_100a": 64}
_OTHER_DOUBLE_LANES = 2


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """An estimate of the time of one launch.

    Attributes:
        secs: The time.
        occupancy: The share of the warps of a multiprocessor that run at once.
        rounds: The rounds of blocks.
        by_unit: The time of a round by unit, and of the whole memory traffic.
    """

    secs: float
    occupancy: float
    rounds: int
    by_unit: Mapping[str, float]

    @property
    def bound(self) -> str:
        """Return the unit that takes longest."""
        return max(self.by_unit, key=self._total)

    def _total(self, unit: str) -> float:
        return self.by_unit[unit] * (1 if unit == "memory" else self.rounds)

    def __str__(self) -> str:
        return (
            f"about {self.secs * 1e6:.1f} us, bound by {self.bound}: {self.rounds} rounds at an "
            f"occupancy of {self.occupancy:.0%}"
        )


def estimate_time(
    report: EmulationReport, gpu: Gpu, registers: int, shared_bytes: int
) -> TimeEstimate:
    """Return the estimated time of a launch.

    Args:
        report: The counts of some or all of its blocks; blocks that did not run count as the mean.
        gpu: The model.
        registers: The registers of a thread.
        shared_bytes: The shared memory of a block.
    """
    num_blocks = math.prod(report.grid)
    limits = ARCHS[gpu.arch]
    occupied = occupancy(limits, math.prod(report.block), registers, shared_bytes)
    at_once = max(1, int(occupied.blocks))
    resident = min(at_once, -(-num_blocks // gpu.num_sms))
    rounds = -(-num_blocks // (gpu.num_sms * resident))
    units = {name: secs * resident for name, secs in _block_secs(report, gpu).items()}
    units["waits"] = _waits(report)
    scale = num_blocks / max(1, report.num_blocks)
    moved = (report.bytes_read + report.bytes_written) * scale
    units["memory"] = moved / (gpu.memory_rate * COPY_SHARE)
    in_rounds = max(secs for name, secs in units.items() if name != "memory") * rounds
    secs = LAUNCH_SECS + max(in_rounds, units["memory"])
    return TimeEstimate(secs, float(occupied.share), rounds, units)


def _block_secs(report: EmulationReport, gpu: Gpu) -> dict[str, float]:
    """Return the time that one block keeps each unit of a multiprocessor busy."""
    blocks = max(1, report.num_blocks)
    lanes = _FP32_LANES.get(gpu.arch, _OTHER_FP32_LANES)
    # A multiply-add is two operations.
    clock = gpu.peaks["float32"] / (2 * lanes * gpu.num_sms)
    counts = report.instructions
    rates = {
        InstructionClass.FMA: lanes,
        InstructionClass.HALF: 2 * lanes,
        InstructionClass.DOUBLE: _DOUBLE_LANES.get(gpu.arch, _OTHER_DOUBLE_LANES),
        **_LANES,
    }
    cycles = {name.value: counts.get(name, 0) * WARP_SIZE / rate for name, rate in rates.items()}
    cycles["issue"] = sum(counts.values()) / NUM_SCHEDULERS
    cycles["shared memory"] = report.shared_wavefronts
    cycles["second-level cache"] = report.global_bytes / L2_BYTES_PER_CYCLE
    secs = {name: count / clock / blocks for name, count in cycles.items()}
    secs["tensor cores"] = _matrix_secs(report, gpu) / blocks
    return secs


def _matrix_secs(report: EmulationReport, gpu: Gpu) -> float:
    """Return the time of all matrix products on the tensor cores of one multiprocessor."""
    total = 0.0
    for name, operations in report.matrix_operations.items():
        instruction, _, operand = name.partition(".")
        rate = matrix_rate(gpu, operand, is_warpgroup=instruction == "wgmma") / gpu.num_sms
        total += operations / rate
    return total


def _waits(report: EmulationReport) -> float:
    """Return the time that a warp of one block waits for memory and at barriers."""
    warps = max(1, report.num_blocks) * -(-math.prod(report.block) // WARP_SIZE)
    loads = report.instructions.get(InstructionClass.GLOBAL_LOAD, 0) / warps
    barriers = report.instructions.get(InstructionClass.BARRIER, 0) / warps
    return loads / LOADS_IN_FLIGHT * MEMORY_SECS + barriers * BARRIER_SECS
