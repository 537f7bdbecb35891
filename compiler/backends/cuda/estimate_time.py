"""Estimate the time of a call on a GPU that is not at hand: a lower bound by the memory's rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from compiler.backends.cuda.device_code import LaunchPlan
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import GPUS

# The time from one launch to the next when the GPU is idle otherwise: about 2 us on Hopper.
_LAUNCH_SECS = 2e-6
# Bytes per second for architectures of which the table has no model.
_NOMINAL_RATE = 1e12


def estimate_secs(plan: LaunchPlan, arrays: Sequence[NDArray[Any]], target: CudaTarget) -> float:
    """Return the time of all launches if each reads or writes its arrays once.

    An architecture without a model counts as the slowest of its GPUs.
    """
    model = target.gpu
    models = [gpu for gpu in GPUS.values() if gpu.arch == target.arch] if model is None else [model]
    rate = min((gpu.memory_rate for gpu in models), default=_NOMINAL_RATE)
    moved = sum(
        arrays[position].nbytes for launch in plan.launches for position in launch.arguments
    )
    return _LAUNCH_SECS * len(plan.launches) + moved / rate
