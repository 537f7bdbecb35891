"""Tuning over ranges of sizes: which sizes to tune, and what follows from their searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compiler.ir.analysis.symbols import (
    UPPER,
    declared,
    is_symbolic_integer,
    symbolic_vars,
    timed_at,
    with_ranges,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify_all_sizes
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from loopwright.errors import JobFailedError
from loopwright.local.shapes_result import ShapeKernel, ShapesResult, ShapeTime
from loopwright.local.tune_result import Trial
from service.coordinator.measurer import WorkerMeasurer
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.search_result import NothingMeasuredError, SearchResult
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

Ranges: TypeAlias = Mapping[Any, tuple[int, int] | int]
"""The least and the greatest size of extents, by their names or their variables."""


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
    def of(
        cls, func: PrimFunc, ranges: Ranges, target: Target, *, max_trials: int
    ) -> ShapeWorkload:
        """Return the workload of a program; fewer trials tune fewer sizes.

        Raises:
            TypeError: If the ranges are no mapping of names to integers.
            ValueError: If the target is no CPU, the program is not symbolic, a range is wrong or
                missing, or the program is not legal at all sizes of the ranges.
        """
        if not isinstance(target, CpuTarget):
            raise ValueError(f"ranges are tuned for CPUs only, not for {target.name}")
        symbolic = _with_all_ranges(func, ranges)
        verify_all_sizes(symbolic)
        return cls(symbolic, target, tuned_sizes(symbolic, max_trials // ROUND_SIZE))

    def tasks(self) -> list[Task]:
        """Return the tasks of the sizes."""
        return tasks_of_sizes(self.func, self.target, self.sizes)

    def finished(
        self,
        measured: Sequence[tuple[Sizes, SearchResult, tuple[Trial, ...]]],
        measurer: WorkerMeasurer,
        should_stop: Callable[[], bool],
    ) -> ShapesResult:
        """Choose the kernels, grow the dispatcher, and check both as one artifact.

        Args:
            measured: The sizes of which something was measured, each with its search and trials.
            measurer: Times the kernels.
            should_stop: Once it returns true, only the tuned sizes decide.

        Raises:
            NothingMeasuredError: If nothing was measured.
            JobFailedError: If no kernel is correct at all sizes, or the artifact is not.
        """
        if not measured:
            raise NothingMeasuredError(
                f"tuning {self.func.name} was stopped before the first measurement"
            )
        tuned = [sizes for sizes, _, _ in measured]
        searches = [search for _, search, _ in measured]
        try:
            search = find_kernels(
                self.func,
                self.target,
                searches,
                tuned,
                measurer=measurer,
                should_stop=should_stop,
            )
        except NoShapeError as error:
            raise JobFailedError(str(error), []) from error
        result = _result(search, searches, tuned, [trials for _, _, trials in measured])
        for sizes in tuned:
            task = Task(timed_at(self.func, sizes), self.target)
            measurement = measurer.measure_module(task, result.module)
            if not measurement.ok:
                message = f"the dispatcher of {self.func.name} failed at {dict(sizes)}"
                raise JobFailedError(f"{message}: {measurement.error}: {measurement.message}", [])
        return result


def _with_all_ranges(func: PrimFunc, ranges: Ranges) -> PrimFunc:
    if not isinstance(ranges, Mapping):
        raise TypeError(f'ranges is {ranges!r}: expected a mapping, such as {{"M": (1, 512)}}')
    names = [var.name for var in symbolic_vars(func) if is_symbolic_integer(var)]
    if not names:
        raise ValueError(f"{func.name} has no symbolic extent, which ranges are of")
    if numbers := [var.name for var in symbolic_vars(func) if var.name not in names]:
        raise ValueError(
            f"{func.name} takes the number {numbers[0]}: make a program of one value of it by "
            f'specialize({{"{numbers[0]}": ...}})'
        )
    if unknown := [name for name in ranges if isinstance(name, str) and name not in names]:
        raise ValueError(
            f"{func.name} has no symbolic extent {unknown[0]}: it has {', '.join(names)}"
        )
    symbolic = with_ranges(func, ranges)
    if missing := [name for name in names if name not in declared(symbolic, UPPER)]:
        raise ValueError(
            f'{func.name}: {missing[0]} has no range, such as "{missing[0]}": (1, 512)'
        )
    return symbolic


def _result(
    search: ShapeSearch,
    searches: Sequence[SearchResult],
    tuned: Sequence[Sizes],
    trials: Sequence[tuple[Trial, ...]],
) -> ShapesResult:
    best = [fastest(of_size.trials) for of_size in searches]
    tuned_secs = [None if trial is None else trial.best_secs for trial in best]
    times = []
    columns = sorted(enumerate(search.matrix.sizes), key=lambda column: tuple(column[1].values()))
    for column, sizes in columns:
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
