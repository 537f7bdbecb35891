"""Tuning over ranges of sizes: which sizes to tune, and what follows from their searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.driver import compile_kernel
from compiler.ir.core.program import PrimFunc
from compiler.target.target import Target
from loopwright.errors import JobFailedError
from loopwright.local.shapes_result import ShapeKernel, ShapesResult
from loopwright.local.tune_result import Trial
from service.coordinator.measurer import WorkerMeasurer
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.search_result import NothingMeasuredError, SearchResult
from tuner.shapes.check_module import check_module
from tuner.shapes.choice_budget import ChoiceBudget
from tuner.shapes.ranges import Ranges, require_cpu, with_all_ranges
from tuner.shapes.shape_time import shape_times
from tuner.shapes.sizes import Sizes, ends_first
from tuner.shapes.tune_shapes import NoShapeError, find_kernels, tasks_of_sizes, tuned_sizes
from tuner.task import Task


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
        require_cpu(target)
        symbolic = with_all_ranges(func, ranges)
        return cls(symbolic, target, tuned_sizes(symbolic, max_trials // ROUND_SIZE))

    def tasks(self) -> list[Task]:
        """Return the tasks of the sizes."""
        return tasks_of_sizes(self.func, self.target, self.sizes)

    def finished(
        self,
        measured: Sequence[tuple[Sizes, SearchResult, tuple[Trial, ...]]],
        measurer: WorkerMeasurer,
        budget: ChoiceBudget,
        on_timed: Callable[[int], None],
    ) -> ShapesResult:
        """Choose the kernels, grow the dispatcher, and check both as one artifact.

        Args:
            measured: The sizes of which something was measured, each with its search and trials.
            measurer: Times the kernels.
            budget: The time for this.
            on_timed: Called with the number of kernels that were timed so far.

        Raises:
            NothingMeasuredError: If nothing was measured.
            JobFailedError: If no kernel is correct at all sizes, or the artifact is not.
        """
        if not measured:
            raise NothingMeasuredError(
                f"tuning {self.func.name} was stopped before the first measurement"
            )
        tuned = [sizes for sizes, _, _ in measured]
        trials = [search.trials for _, search, _ in measured]
        num_timed = 0

        def count(*_: object) -> None:
            nonlocal num_timed
            num_timed += 1
            on_timed(num_timed)

        try:
            search = find_kernels(
                self.func,
                self.target,
                trials,
                tuned,
                measurer=measurer,
                on_measured=count,
                budget=budget,
            )
            budget.reserve(0.0)
            check_module(search, ends_first(tuned), measurer, budget.affords)
        except NoShapeError as error:
            raise JobFailedError(str(error), []) from error
        module = search.module()
        return ShapesResult(
            search.func,
            search.target,
            tuple(ShapeKernel(k.sketch, k.trace) for k in search.matrix.kernels),
            shape_times(search, trials, tuned),
            module,
            compile_kernel(module, self.target),
            tuple(public for _, _, public in measured),
        )
