"""The rates of a GPU that the estimate of times needs."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.target.cuda import CudaTarget
from compiler.target.gpus import Gpu, GpuArch, nearest_gpu

LANES = {"sm_80": 64}
"""Lanes for float32 of a multiprocessor: 64 on sm_80, `OTHER_LANES` on all others (CUDA C++
Programming Guide, "Arithmetic Instructions").
"""
OTHER_LANES = 128
COPY_SHARE = 0.9
"""The share of a data sheet's memory bandwidth that copies reach: 4.3 of 4.8 TB/s on an H200."""
L2_BYTES_PER_CYCLE = 32.0
"""Bytes a cycle from the second-level cache to a multiprocessor: half of the 64 that the ports are
wide. An estimate.
"""
FP32 = "float32"


@dataclass(frozen=True, slots=True)
class GpuRates:
    """What a GPU does in a second.

    Attributes:
        gpu: The model.
        limits: The limits of its architecture.
        lanes: The lanes for float32 of a multiprocessor.
        clock: The cycles a second.
    """

    gpu: Gpu
    limits: GpuArch
    lanes: int
    clock: float

    @classmethod
    def of(cls, target: CudaTarget) -> GpuRates:
        """Return the rates of a target; of an architecture alone, those of the nearest model."""
        gpu = target.gpu or nearest_gpu(target.arch)
        lanes = LANES.get(gpu.arch, OTHER_LANES)
        # A multiply-add is two operations.
        clock = gpu.peaks[FP32] / (2 * lanes * gpu.num_sms)
        return cls(gpu, target.limits, lanes, clock)

    @property
    def memory(self) -> float:
        """Return the bytes a second between the memory and all multiprocessors."""
        return self.gpu.memory_rate * COPY_SHARE

    @property
    def l2(self) -> float:
        """Return the bytes a second from the second-level cache to one multiprocessor."""
        return L2_BYTES_PER_CYCLE * self.clock
