"""The times of kernels at sizes: what the choice of kernels and the dispatcher follow from."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.ir.analysis.symbols import timed_at
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
    clearly slower are timed briefly. A size at which the time ends is left out. Of the first size,
    those kernels stay that were timed until then, a correct one at least.

    Args:
        program: The symbolic program, and its target.
        kernels: Its schedules, all different.
        sizes: The sizes.
        measurer: Times the kernels.
        on_measured: Called with each measurement, and the task and candidate that it is of.
        affords: Returns whether there is time for so many seconds more.
    """
    rows, columns = list(range(len(kernels))), list[dict[int, float]]()
    first, slowest_secs = 0, 0.0
    for of_size in sizes:
        if columns and not affords(slowest_secs):
            break
        begun_secs = time.monotonic()
        task = workload_at(program, of_size)
        column: dict[int, float] = {}
        results = _measured(task, kernels, rows, first, measurer)
        for row, measurement in results:
            on_measured(task, kernels[row], measurement)
            column[row] = measurement.best_secs if measurement.ok else np.inf
            is_needed = not columns and np.isinf(min(column.values()))
            if not is_needed and not affords(0.0):
                break
        results.close()
        if columns and len(column) < len(rows):
            break
        rows, first = sorted(column), min(column, key=column.__getitem__)
        columns.append(column)
        slowest_secs = max(slowest_secs, time.monotonic() - begun_secs)
    secs = np.array([[column[row] for column in columns] for row in rows])
    return TimeMatrix(tuple(kernels[row] for row in rows), tuple(sizes[: len(columns)]), secs)


def _measured(
    task: Task, kernels: Sequence[Candidate], rows: Sequence[int], first: int, measurer: Measurer
) -> Generator[tuple[int, Measurement], None, None]:
    """Yield the measurements of rows: that of the first, and then those of the others."""
    incumbent_secs: float | None = None
    for batch in ([first], [row for row in rows if row != first]):
        chosen = [kernels[row] for row in batch]
        for index, measurement in measurer.measure(task, chosen, incumbent_secs):
            yield batch[index], measurement
            if batch[index] == first and measurement.ok:
                incumbent_secs = measurement.best_secs


def workload_at(program: Task, sizes: Sizes) -> Task:
    """Return a symbolic program to be timed at a size.

    A dispatcher compares with a single row, so that its kernel is compiled for that size alone.
    """
    if is_one(sizes) and len(sizes) == 1:
        return Task(program.func.specialize(dict(sizes.items())), program.target)
    return Task(timed_at(program.func, sizes), program.target)
