"""The times of kernels at sizes: what the choice of kernels and the dispatcher follow from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.ir.analysis.symbols import timed_at
from compiler.ir.core.program import PrimFunc
from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.measurer.measurer import Measurer
from tuner.shapes.sizes import Sizes, is_one
from tuner.task import Task

Floats = npt.NDArray[np.float64]

NEAR_BEST = 0.10
"""A kernel that nowhere is so near to the best is not timed at further sizes. Chosen: as much as
the dispatcher may lose in the mean.
"""

OnMeasured = Callable[[Task, Candidate, Measurement], None]


@dataclass(frozen=True)
class TimeMatrix:
    """The shortest time of each kernel at each size in seconds; infinity for a failure.

    Attributes:
        kernels: Schedules of the symbolic program, one a row.
        sizes: One a column.
    """

    kernels: tuple[Candidate, ...]
    sizes: tuple[Sizes, ...]
    secs: Floats

    @property
    def losses(self) -> Floats:
        """Return the logarithm of each time as a multiple of the best at its size."""
        best = self.secs.min(axis=0)
        ratios = np.divide(self.secs, best, out=np.full_like(self.secs, np.inf), where=best > 0)
        return np.log(np.where(np.isfinite(best), ratios, 1.0))

    def promising(self) -> tuple[Candidate, ...]:
        """Return the kernels that are nearly the best at some size."""
        near = (self.losses <= np.log1p(NEAR_BEST)).any(axis=1)
        return tuple(kernel for kernel, is_near in zip(self.kernels, near, strict=True) if is_near)

    def with_kernels(self, kernels: Sequence[Candidate]) -> TimeMatrix:
        """Return the rows of some kernels."""
        rows = [self.kernels.index(kernel) for kernel in kernels]
        return TimeMatrix(tuple(kernels), self.sizes, self.secs[rows])

    def beside(self, other: TimeMatrix) -> TimeMatrix:
        """Return the columns of two matrices of the same kernels."""
        assert self.kernels == other.kernels, "the rows are the same"
        return TimeMatrix(
            self.kernels, (*self.sizes, *other.sizes), np.hstack([self.secs, other.secs])
        )


def measure_matrix(
    program: Task,
    kernels: Sequence[Candidate],
    sizes: Sequence[Sizes],
    *,
    measurer: Measurer,
    on_measured: OnMeasured = lambda *_: None,
    affords: Callable[[float], bool] = lambda _: True,
) -> TimeMatrix:
    """Time kernels of a symbolic program at sizes; each is compared with the oracle there.

    At each size, the kernel that was the best at the size before comes first: then others that are
    clearly slower are timed briefly.

    Args:
        program: The symbolic program, and its target.
        kernels: Its schedules, all different.
        sizes: The sizes.
        measurer: Times the kernels.
        on_measured: Called with each measurement, and the task and candidate that it is of.
        affords: Returns whether there is time for so many seconds more. The first size is timed in
            any case, and another one if that may take as long as the slowest so far.
    """
    secs = np.full((len(kernels), len(sizes)), np.inf)
    first, slowest_secs, num_timed = 0, 0.0, 0
    for column, of_size in enumerate(sizes):
        if column > 0 and not affords(slowest_secs):
            break
        start_secs = time.monotonic()
        task = Task(_workload(program.func, of_size), program.target)
        others = [row for row in range(len(kernels)) if row != first]
        for rows in ([first], others):
            best = float(secs[:, column].min())
            incumbent = best if np.isfinite(best) else None
            batch = [kernels[row] for row in rows]
            for index, measurement in measurer.measure(task, batch, incumbent):
                on_measured(task, batch[index], measurement)
                if measurement.ok:
                    secs[rows[index], column] = measurement.best_secs
        first = int(np.argmin(secs[:, column]))
        slowest_secs = max(slowest_secs, time.monotonic() - start_secs)
        num_timed += 1
    return TimeMatrix(tuple(kernels), tuple(sizes[:num_timed]), secs[:, :num_timed])


def _workload(func: PrimFunc, sizes: Sizes) -> PrimFunc:
    """Return a symbolic program to be timed at a size.

    A dispatcher compares with a single row, so that its kernel is compiled for that size alone.
    """
    if is_one(sizes) and len(sizes) == 1:
        return func.specialize(dict(sizes.items()))
    return timed_at(func, sizes)
