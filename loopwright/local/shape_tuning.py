"""Tuning over ranges of sizes: which sizes to tune, and what follows from their searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.analysis.symbols import symbolic_vars, timed_at, with_ranges
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify_all_sizes
from compiler.target.target import Target
from loopwright.errors import JobFailedError
from loopwright.local.shapes_result import ShapeKernel, ShapesResult, ShapeTime
from loopwright.local.tune_result import Trial
from service.coordinator.measurer import WorkerMeasurer
from tuner.loop.search_result import SearchResult
from tuner.shapes.dispatcher import kernel_of
from tuner.shapes.sizes import Sizes
from tuner.shapes.tune_shapes import (
    NoShapeError,
    ShapeSearch,
    find_kernels,
    tasks_of_sizes,
    tuned_sizes,
)
from tuner.task import Task
from tuner.trial import fastest

Ranges = Mapping[str, tuple[int, int] | int]


@dataclass(frozen=True)
class ShapeWorkload:
    """A symbolic program to tune, with its ranges and the sizes that are tuned.

    Attributes:
        func: The program.
        target: The target.
        sizes: The sizes.
    """

    func: PrimFunc
    target: Target
    sizes: Sequence[Sizes]

    @classmethod
    def of(cls, func: PrimFunc, ranges: Ranges, target: Target) -> ShapeWorkload:
        """Return the workload of a program.

        Raises:
            ValueError: If the program is not symbolic, a range is wrong, or the program is not
                legal at all sizes of the ranges.
        """
        if not symbolic_vars(func):
            raise ValueError(f"{func.name} has no symbolic extent, of which `ranges` are")
        symbolic = with_ranges(func, ranges)
        verify_all_sizes(symbolic)
        return cls(symbolic, target, tuned_sizes(symbolic))

    def tasks(self) -> list[Task]:
        """Return the tasks of the sizes."""
        return tasks_of_sizes(self.func, self.target, self.sizes)

    def finished(
        self,
        searches: Sequence[SearchResult],
        trials: Sequence[tuple[Trial, ...]],
        measurer: WorkerMeasurer,
        should_stop: Callable[[], bool],
    ) -> ShapesResult:
        """Choose the kernels, grow the dispatcher, and check both as one artifact.

        Raises:
            JobFailedError: If no kernel is correct at all sizes, or the artifact is not.
        """
        try:
            search = find_kernels(
                self.func,
                self.target,
                searches,
                self.sizes,
                measurer=measurer,
                should_stop=should_stop,
            )
        except NoShapeError as error:
            raise JobFailedError(str(error), []) from error
        result = _result(search, searches, self.sizes, trials)
        for sizes in self.sizes:
            task = Task(timed_at(self.func, sizes), self.target)
            measurement = measurer.measure_module(task, result.module)
            if not measurement.ok:
                message = f"the dispatcher of {self.func.name} failed at {dict(sizes)}"
                raise JobFailedError(f"{message}: {measurement.error}: {measurement.message}", [])
        return result


def _result(
    search: ShapeSearch,
    searches: Sequence[SearchResult],
    tuned: Sequence[Sizes],
    trials: Sequence[tuple[Trial, ...]],
) -> ShapesResult:
    best = [fastest(of_size.trials) for of_size in searches]
    tuned_secs = [None if trial is None else trial.best_secs for trial in best]
    times = []
    for column, sizes in enumerate(search.matrix.sizes):
        position = tuned.index(sizes) if sizes in tuned else None
        times.append(
            ShapeTime(
                dict(sizes),
                kernel_of(search.tree, sizes),
                search.dispatched_secs[column],
                search.best_secs[column],
                None if position is None else tuned_secs[position],
            )
        )
    kernels = tuple(ShapeKernel(k.sketch, k.trace) for k in search.matrix.kernels)
    return ShapesResult(
        search.func, search.target, kernels, tuple(times), search.module(), tuple(trials)
    )
