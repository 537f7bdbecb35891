"""The kernels of a symbolic program follow from the measurements of its sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from compiler import te
from compiler.driver import compile_kernel
from compiler.ir.analysis.specialize import sized
from compiler.ir.analysis.symbols import with_ranges
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.loop.tune import tune_tasks
from tuner.shapes.choice_budget import ChoiceBudget
from tuner.shapes.sizes import Sizes
from tuner.shapes.tune_shapes import (
    NoShapeError,
    ShapeSearch,
    find_kernels,
    tasks_of_sizes,
    tuned_sizes,
)
from tuner.task import Task
from tuner.trial import MeasuredTrial

TARGET = Target("cpu -mcpu=znver3 -num-cores=1")


def product() -> PrimFunc:
    m = te.var("M")
    a = te.placeholder((m, 32), "float32", name="A")
    b = te.placeholder((32, 32), "float32", name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((m, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return with_ranges(te.create_prim_func([a, b, c]), {"M": (1, 64)})


def formula(task: Task, candidate: Candidate, failing: int | None = None) -> Measurement:
    rows = static_shape(sized(task.func).buffers[0])[0]
    if rows == failing:
        return Measurement(error=ErrorKind.WRONG_RESULT, message="wrong")
    favourite = {"direct": 4.0, "cached": 40.0}.get(candidate.sketch, 1e6)
    return Measurement((1e-6 * rows * (1 + abs(math.log(rows / favourite))),))


class FormulaMeasurer:
    """Times by a formula: each sketch is fast in a range of rows of its own."""

    def __init__(self, failing: int | None = None) -> None:
        self.failing = failing

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index, candidate in enumerate(candidates):
            candidate.trace.apply_to(task.func)  # it is a schedule of the program
            yield index, formula(task, candidate, self.failing)

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for _ in range(num_rounds):
            yield [formula(task, candidate, self.failing) for candidate in candidates]


@cache
def tuned() -> tuple[PrimFunc, Sequence[Sizes], Sequence[Sequence[MeasuredTrial]]]:
    """Return a program, some of its sizes, and the trials of their searches."""
    func = product()
    sizes = tuned_sizes(func)[::3]
    tasks = tasks_of_sizes(func, TARGET, sizes)
    searches = tune_tasks(
        tasks, measurer=FormulaMeasurer(), max_trials=16 * len(tasks), strategy="random"
    )
    return func, sizes, [search.trials for search in searches]


def found(measurer: FormulaMeasurer, budget: ChoiceBudget | None = None) -> ShapeSearch:
    func, sizes, trials = tuned()
    return find_kernels(func, TARGET, trials, sizes, measurer=measurer, budget=budget)


def test_each_size_is_worth_the_same() -> None:
    tasks = tasks_of_sizes(product(), TARGET, [{"M": 1}, {"M": 64}])
    assert [task.weight for task in tasks] == [64, 1]


def test_few_trials_tune_few_sizes() -> None:
    assert len(tuned_sizes(product())) == 8
    assert tuned_sizes(product(), 2) == [{"M": 1}, {"M": 64}]
    assert tuned_sizes(product(), 1) == tuned_sizes(product(), 0) == [{"M": 64}]


@pytest.fixture(scope="module")
def search() -> ShapeSearch:
    return found(FormulaMeasurer())


def test_the_dispatcher_calls_the_kernel_that_is_fast_at_the_size(search: ShapeSearch) -> None:
    assert [k.sketch for k in search.matrix.kernels] in (["direct", "cached"], ["cached", "direct"])
    dispatched = search.dispatched_secs
    assert dispatched == pytest.approx(search.best_secs, rel=0.1)
    timed = {of_size["M"] for of_size in search.matrix.sizes}
    assert {of_size["M"] for of_size in tuned_sizes(product())[::3]} < timed <= {*range(1, 65)}
    assert "if M <= " in search.module()["main"].script()
    assert compile_kernel(search.module(), TARGET).dispatcher


def test_the_same_measurements_give_the_same_kernels(search: ShapeSearch) -> None:
    again = found(FormulaMeasurer())
    assert search.tree == again.tree
    assert search.matrix.kernels == again.matrix.kernels


def test_kernels_that_are_wrong_at_a_size_are_no_choice() -> None:
    with pytest.raises(NoShapeError, match="kernels of main is correct"):
        found(FormulaMeasurer(failing=64))
