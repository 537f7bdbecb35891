"""Estimate the time of a call on a GPU that is not at hand, from what the emulator counted."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.emulator.estimate import estimate_time
from compiler.backends.emulator.report import EmulationReport
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import nearest_gpu


def estimate_secs(
    code: DeviceCode, reports: Sequence[EmulationReport], target: CudaTarget
) -> float:
    """Return the time of all launches, one report each.

    An architecture without a model counts as the nearest model.
    """
    gpu = target.gpu or nearest_gpu(target.arch)
    total = 0.0
    for launch, report in zip(code.plan.launches, reports, strict=True):
        used = code.resources[launch.kernel]
        shared_bytes = used.shared_bytes + launch.shared_bytes
        total += estimate_time(report, gpu, used.registers, shared_bytes).secs
    return total
