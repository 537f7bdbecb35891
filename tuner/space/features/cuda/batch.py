"""The shared input of the groups of features of GPUs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.cuda import CudaTarget
from tuner.space.features.cuda.kernel import Kernel
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.roofline import KernelTime
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.sketch import Sketch


class CudaBatch(CandidateBatch):
    """N candidates of a sketch for a GPU; each nest is a kernel."""

    def __init__(self, sketch: Sketch, choices: Ints, target: CudaTarget) -> None:
        super().__init__(sketch, choices, target)
        self.rates = GpuRates.of(target)
        self.kernels = [
            Kernel(
                tables,
                self.values,
                tuple(c for c in sketch.copies if c.is_read_by(tables.nest.facts.name)),
                target.limits,
            )
            for tables in self.tables
        ]

    @property
    def kernel(self) -> Kernel:
        """Return the kernel of the main nest."""
        return self.kernels[0]

    @cached_property
    def times(self) -> list[KernelTime]:
        """Return the estimated times of the kernels."""
        return [KernelTime(kernel, self.rates) for kernel in self.kernels]

    @property
    def time(self) -> KernelTime:
        """Return the estimated time of the main kernel."""
        return self.times[0]

    @cached_property
    def secs(self) -> Floats:
        """Return the estimated time of all kernels in seconds."""
        return sum((time.total for time in self.times), np.zeros(len(self)))
