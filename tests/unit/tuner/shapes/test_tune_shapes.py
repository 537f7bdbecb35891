"""The kernels of a symbolic program follow from the measurements of its sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
from tuner.shapes.sizes import Sizes
from tuner.shapes.tune_shapes import (
    NoShapeError,
    ShapeSearch,
    find_kernels,
    tasks_of_sizes,
    tuned_sizes,
)
from tuner.task import Task

TARGET = Target("cpu -mcpu=znver3 -num-cores=1")


def product() -> PrimFunc:
    m = te.var("M")
    a = te.placeholder((m, 32), "float32", name="A")
    b = te.placeholder((32, 32), "float32", name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((m, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return with_ranges(te.create_prim_func([a, b, c]), {"M": (1, 64)})


class FormulaMeasurer:
    """Times by a formula: each sketch is fast in a range of rows of its own."""

    def __init__(self, failing: int | None = None) -> None:
        self.failing = failing

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        rows = static_shape(sized(task.func).buffers[0])[0]
        for index, candidate in enumerate(candidates):
            candidate.trace.apply_to(task.func)  # it is a schedule of the program
            if rows == self.failing:
                yield index, Measurement(error=ErrorKind.WRONG_RESULT, message="wrong")
                continue
            favourite = {"direct": 4.0, "cached": 40.0}.get(candidate.sketch, 1e6)
            secs = 1e-6 * rows * (1 + abs(math.log(rows / favourite)))
            yield index, Measurement((secs,))


def searched(measurer: FormulaMeasurer) -> tuple[ShapeSearch, list[Sizes]]:
    func = product()
    sizes = tuned_sizes(func)[::3]
    tasks = tasks_of_sizes(func, TARGET, sizes)
    searches = tune_tasks(tasks, measurer=measurer, max_trials=16 * len(tasks), strategy="random")
    trials = [search.trials for search in searches]
    return find_kernels(func, TARGET, trials, sizes, measurer=measurer), sizes


def test_each_size_is_worth_the_same() -> None:
    tasks = tasks_of_sizes(product(), TARGET, [{"M": 1}, {"M": 64}])
    assert [task.weight for task in tasks] == [64, 1]


def test_few_trials_tune_few_sizes() -> None:
    assert len(tuned_sizes(product())) == 8
    assert tuned_sizes(product(), 2) == [{"M": 1}, {"M": 64}]
    assert tuned_sizes(product(), 1) == tuned_sizes(product(), 0) == [{"M": 64}]


@pytest.fixture(scope="module")
def search() -> ShapeSearch:
    return searched(FormulaMeasurer())[0]


def test_the_dispatcher_calls_the_kernel_that_is_fast_at_the_size(search: ShapeSearch) -> None:
    assert [k.sketch for k in search.matrix.kernels] in (["direct", "cached"], ["cached", "direct"])
    dispatched = search.dispatched_secs
    assert dispatched == pytest.approx(search.best_secs, rel=0.1)
    timed = {of_size["M"] for of_size in search.matrix.sizes}
    assert {of_size["M"] for of_size in tuned_sizes(product())[::3]} < timed <= {*range(1, 65)}
    assert "if M <= " in search.module()["main"].script()
    assert compile_kernel(search.module(), TARGET).dispatcher


def test_the_same_measurements_give_the_same_kernels(search: ShapeSearch) -> None:
    again, _ = searched(FormulaMeasurer())
    assert search.tree == again.tree
    assert search.matrix.kernels == again.matrix.kernels


def test_kernels_that_are_wrong_at_a_size_are_no_choice() -> None:
    with pytest.raises(NoShapeError, match="kernels of main is correct"):
        searched(FormulaMeasurer(failing=64))
