"""Search for the kernels and the dispatcher of a symbolic program.

Sizes are tuned as tasks of one group; the best schedules of each are carried over to the symbolic
program. These kernels are timed at more sizes, a few of them are chosen, and comparisons between
them are grown. All of it follows from the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Protocol

import numpy as np

from compiler.ir.core.program import IRModule, PrimFunc
from compiler.schedule.error import ScheduleError, TraceError
from compiler.target.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.measurer.comparer import Comparer
from tuner.measurer.measurer import Measurer
from tuner.shapes.choice_budget import (
    BEST_OF_EACH,
    COMPARED_SHARE,
    ChoiceBudget,
    secs_a_timing,
)
from tuner.shapes.dispatcher import (
    Tree,
    dispatching_module,
    grow_tree,
    kernel_of,
    kernels_in,
    renumbered,
)
from tuner.shapes.kernel_choice import MAX_KERNELS, choose_kernels
from tuner.shapes.paired_times import compared
from tuner.shapes.sizes import Sizes, ends_first, ranges_of, spread_sizes, with_divisors
from tuner.shapes.time_matrix import OnMeasured, TimeMatrix, measure_matrix
from tuner.task import Task
from tuner.transfer.to_symbolic import symbolic_trace
from tuner.trial import MeasuredTrial

TUNED_SIZES = 8
"""Sizes that are tuned: each further one takes a search of its own. Chosen."""
TIMED_SIZES = 24
"""Sizes spread over the ranges that kernels are timed at, besides those that are tuned: about three
in each doubling from 1 to 512. Chosen.
"""
TILES = (4, 5, 6, 7, 8)
"""Innermost tiles that the best schedule of each size is tried with besides its own: a size is fast
with tiles that nearly divide it, and of 13 rows tiles of 6 compute 18. Chosen: tiles whose sums are
kept in registers.
"""


class ShapeMeasurer(Measurer, Comparer, Protocol):
    """Times kernels alone and in turns."""


@dataclass(frozen=True)
class ShapeSearch:
    """The kernels of a symbolic program, and when to call which.

    Attributes:
        func: The symbolic program, with its ranges.
        target: The target.
        matrix: The times of the chosen kernels at all sizes; the dispatcher calls each of them.
        num_candidates: How many kernels they were chosen from.
        best_secs: The best time of any kernel at each size, chosen or not.
        tree: The comparisons.
    """

    func: PrimFunc
    target: Target
    matrix: TimeMatrix
    num_candidates: int
    best_secs: tuple[float, ...]
    tree: Tree

    @property
    def dispatched_secs(self) -> tuple[float, ...]:
        """Return the time of the kernel that the dispatcher calls, at each size."""
        kernels = (kernel_of(self.tree, sizes) for sizes in self.matrix.sizes)
        return tuple(float(self.matrix.secs[row, n]) for n, row in enumerate(kernels))

    def module(self) -> IRModule:
        """Return the dispatcher and its kernels."""
        kernels = [kernel.trace.apply_to(self.func).func for kernel in self.matrix.kernels]
        return dispatching_module(self.func, kernels, self.tree)


class NoShapeError(LookupError):
    """No kernel of a symbolic program is correct at all sizes."""


def tuned_sizes(func: PrimFunc, most: int = TUNED_SIZES) -> list[Sizes]:
    """Return the sizes of a symbolic program to tune: the greatest alone if only one may be."""
    number = min(most, TUNED_SIZES)
    sizes = with_divisors(spread_sizes(ranges_of(func), max(number, 2)))
    return sizes[-max(number, 1) :]


def tasks_of_sizes(func: PrimFunc, target: Target, sizes: Sequence[Sizes]) -> list[Task]:
    """Return the tasks of a program at sizes; what a share of a time is worth is equal for all."""
    tasks = [Task(func.specialize(dict(of_size.items())), target) for of_size in sizes]
    most = max(1, *(task.flops for task in tasks))
    return [Task(t.func, target, most / max(t.flops, 1)) for t in tasks]


def carried_over(
    func: PrimFunc,
    trials: Sequence[Sequence[MeasuredTrial]],
    sizes: Sequence[Sizes],
    best_of_each: int = BEST_OF_EACH,
    affords: Callable[[float], bool] = lambda _: True,
) -> list[Candidate]:
    """Return schedules of a symbolic program like the best of sizes; the default comes last.

    Args:
        func: The symbolic program.
        trials: The trials of each tuned size.
        sizes: The tuned sizes.
        best_of_each: How many schedules of each size. Only of the greatest number, the best comes
            with other innermost tiles, too.
        affords: Returns whether there is time for so many seconds more: the best of each size come
            first, of the greatest in any case.
    """
    best = [
        sorted((t for t in measured if t.measurement.ok), key=lambda t: t.best_secs)
        for measured in trials
    ]
    kernels: dict[str, Candidate] = {}
    forms: list[tuple[int, int | None]] = [(rank, None) for rank in range(best_of_each)]
    if best_of_each == BEST_OF_EACH:
        forms += [(0, tile) for tile in TILES]
    of_sizes = list(zip(sizes, best, strict=True))[::-1]
    for (rank, tile), (of_size, correct) in product(forms, of_sizes):
        if kernels and not affords(0.0):
            break
        try:
            trial = correct[rank]
            trace = symbolic_trace(trial.candidate.trace, func, dict(of_size.items()), tile)
        except (IndexError, ScheduleError, TraceError):
            continue  # there are fewer, or its loops depend on the size
        kernel = Candidate(trial.candidate.sketch, trace)
        kernels.setdefault(kernel.key, kernel)
    default = default_candidate()
    kernels.pop(default.key, None)
    return [*kernels.values(), default]


def find_kernels(
    func: PrimFunc,
    target: Target,
    trials: Sequence[Sequence[MeasuredTrial]],
    sizes: Sequence[Sizes],
    *,
    measurer: ShapeMeasurer,
    max_kernels: int = MAX_KERNELS,
    on_measured: OnMeasured = lambda *_: None,
    budget: ChoiceBudget | None = None,
) -> ShapeSearch:
    """Choose the kernels of a symbolic program, and grow its dispatcher.

    Args:
        func: The symbolic program.
        target: The target.
        trials: The trials of each tuned size.
        sizes: These sizes.
        measurer: Times the kernels.
        max_kernels: The limit on kernels.
        on_measured: Called with each measurement.
        budget: The time for all this: with less of it, fewer kernels are timed at fewer sizes.

    Raises:
        NoShapeError: If no kernel is correct at all sizes.
    """
    budget = budget or ChoiceBudget()
    secs = secs_a_timing(trials)
    # What comes after the timings: the module is compiled, checked at one size, and compiled here.
    last_secs = 2 * (max_kernels + 1) * secs
    budget.reserve(last_secs)
    best_of_each = budget.best_of_each(len(sizes), secs)
    candidates = carried_over(func, trials, sizes, best_of_each, budget.affords)
    program = Task(func, target)
    further = [s for s in spread_sizes(ranges_of(func), TIMED_SIZES) if s not in sizes]
    if budget.is_limited:
        sizes, further = ends_first(sizes), ends_first(further)
    measure = partial(
        measure_matrix, measurer=measurer, on_measured=on_measured, affords=budget.affords
    )
    matrix = measure(program, candidates, sizes)
    matrix = matrix.with_kernels(matrix.promising())
    budget.reserve(last_secs, COMPARED_SHARE)
    if further and not budget.should_stop() and budget.affords(len(matrix.kernels) * secs):
        more = measure(program, matrix.kernels, further)
        if more.kernels == matrix.kernels:  # else the time ended during the first of these sizes
            matrix = matrix.beside(more)
    budget.reserve(last_secs)
    matrix = _correct(func, matrix)
    if not budget.should_stop():
        matrix = _correct(func, compared(program, matrix, measurer, budget.affords))
    rows = choose_kernels(matrix.losses, max_kernels)
    chosen = matrix.with_kernels([matrix.kernels[row] for row in rows])
    best = tuple(float(secs) for secs in matrix.secs.min(axis=0))
    return _dispatched(func, target, chosen, len(candidates), best)


def _correct(func: PrimFunc, matrix: TimeMatrix) -> TimeMatrix:
    """Return the rows of the kernels that are correct at all sizes."""
    rows = zip(matrix.kernels, matrix.secs, strict=True)
    correct = matrix.with_kernels([kernel for kernel, secs in rows if np.isfinite(secs).all()])
    if not correct.kernels:
        raise NoShapeError(f"none of {len(matrix.kernels)} kernels of {func.name} is correct")
    return correct


def _dispatched(
    func: PrimFunc,
    target: Target,
    chosen: TimeMatrix,
    num_candidates: int,
    best_secs: tuple[float, ...],
) -> ShapeSearch:
    """Grow the dispatcher; kernels that it does not call are left out."""
    tree = grow_tree(chosen.sizes, chosen.losses)
    called = sorted(kernels_in(tree))
    chosen = chosen.with_kernels([chosen.kernels[number] for number in called])
    tree = renumbered(tree, {number: position for position, number in enumerate(called)})
    return ShapeSearch(func, target, chosen, num_candidates, best_secs, tree)
