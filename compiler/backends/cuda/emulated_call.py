"""Calls of kernels on an emulated GPU: the emulator runs the PTX on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.device_code import DeviceCode, KernelLaunch
from compiler.backends.cuda.estimate_time import estimate_secs
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.report import EmulationReport
from compiler.backends.emulator.tensor_copies import TensorMap
from compiler.backends.error import KernelFaultError
from compiler.runtime.sample_calls import TimedSamples
from compiler.target.cuda import CudaTarget

Array = NDArray[Any]


class EmulationError(KernelFaultError):
    """A kernel that the emulator ran does something wrong, such as a race.

    Attributes:
        report: The faults, each with its instruction, line, block and thread.
    """

    def __init__(self, report: EmulationReport) -> None:
        super().__init__(str(report))
        self.report = report


class EmulatedCall(DeviceCall):
    """Runs the launches of a kernel on arrays; it is what `Module.bind` returns.

    Attributes:
        reports: The reports of the last run, one for each launch.

    Args:
        code: The code.
        arrays: One array for each parameter, in the memory of the host.
        target: The GPU.
    """

    def __init__(self, code: DeviceCode, arrays: Sequence[Array], target: CudaTarget) -> None:
        workspaces = (np.empty(w.shape, w.dtype) for w in code.plan.workspaces)
        self._code = code
        self._arrays = (*arrays, *workspaces)
        self._target = target
        self.reports: tuple[EmulationReport, ...] = ()

    def __call__(self) -> None:
        """Run the launches one after another.

        Raises:
            EmulationError: If a launch has a fault; later ones do not run.
        """
        reports = []
        for launch in self._code.plan.launches:
            report = self._run(launch)
            if report.faults:
                raise EmulationError(report)
            reports.append(report)
        self.reports = tuple(reports)

    def mean_secs(self, calls: int) -> float:
        """Return an estimate of the time of a call on the GPU; it runs the kernel if needed."""
        del calls  # an estimate does not vary
        if not self.reports:
            self()
        return estimate_secs(self._code, self.reports, self._target)

    def event_secs(self, calls: int) -> float:
        """Return the same estimate: it does not depend on the clock."""
        return self.mean_secs(calls)

    def warm_secs(self, calls: int) -> float:
        """Return the same estimate: the model has no cache that keeps arrays."""
        return self.mean_secs(calls)

    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        """Return one estimate: it does not vary."""
        del incumbent_secs  # an estimate costs the same for each kernel
        return TimedSamples((self.mean_secs(1),))

    def explore(self, max_threads: int) -> tuple[EmulationReport, ...]:
        """Run each launch, faults or not, on at most so many threads; return their reports.

        Blocks that do not fit are left out: of a large grid those that run lie evenly in it.
        """
        return tuple(
            self._run(launch, _evenly(prod(launch.grid), max_threads // prod(launch.block)))
            for launch in self._code.plan.launches
        )

    def _run(self, launch: KernelLaunch, blocks: Sequence[int] | None = None) -> EmulationReport:
        arrays = [self._arrays[position] for position in launch.arguments]
        tensors = [TensorMap(self._arrays[tensor.array], tensor.box) for tensor in launch.tensors]
        scalars = [np.dtype(dtype).type(value) for dtype, value in launch.scalars]
        return emulate(
            self._code.ptx,
            launch.kernel,
            launch.grid,
            launch.block,
            [*arrays, *tensors, *scalars],
            dynamic_shared_bytes=launch.shared_bytes,
            blocks=blocks,
        )


def _evenly(num_blocks: int, most: int) -> Sequence[int] | None:
    """Return the numbers of some blocks, the first and the last among them; None for all."""
    if num_blocks <= most:
        return None
    blocks: list[int] = np.linspace(0, num_blocks - 1, max(2, most)).astype(int).tolist()
    return blocks
