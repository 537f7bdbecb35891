"""Times in turns are those of the kernels, whatever else runs on the host meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from compiler.ir.analysis.specialize import sized
from compiler.ir.core.nodes import static_shape
from compiler.runtime.measurement import ErrorKind, Measurement
from tests.unit.tuner.shapes.test_tune_shapes import (
    TARGET,
    FormulaMeasurer,
    formula,
    found,
    product,
    tuned,
)
from tuner.candidate import Candidate, default_candidate
from tuner.shapes.dispatcher import kernel_of
from tuner.shapes.paired_times import NUM_ROUNDS, compared, paired_secs
from tuner.shapes.sizes import Sizes
from tuner.shapes.time_matrix import TimeMatrix, workload_at
from tuner.task import Task

TRUE_SECS = np.array([1.0, 1.2, 1.5])


def rounds(load: np.ndarray) -> list[list[Measurement]]:
    """Return the times of each round, multiplied by its factor."""
    return [[Measurement((secs * factor,)) for secs in TRUE_SECS] for factor in load]


def test_load_that_comes_and_goes_changes_no_ratio() -> None:
    load = np.random.default_rng(0).uniform(1.0, 3.0, NUM_ROUNDS)
    paired = paired_secs(np.array([2.0, 1.2, 3.0]), rounds(load))
    np.testing.assert_allclose(paired / paired[0], TRUE_SECS)
    assert paired[0] == load.min()


def test_a_round_that_disturbs_one_kernel_is_outvoted() -> None:
    measured = rounds(np.ones(NUM_ROUNDS))
    measured[0][0] = Measurement((9.0,))
    np.testing.assert_allclose(paired_secs(TRUE_SECS, measured), TRUE_SECS)


def test_a_kernel_that_fails_in_a_round_is_no_choice() -> None:
    measured = rounds(np.ones(2))
    measured[1][0] = Measurement(error=ErrorKind.WRONG_RESULT, message="wrong")
    np.testing.assert_allclose(paired_secs(TRUE_SECS, measured), [np.inf, 1.2, 1.5])


class DisturbedMeasurer(FormulaMeasurer):
    """Something else runs while the best kernels of some sizes are timed alone."""

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index, measurement in super().measure(task, candidates, incumbent_secs):
            rows = static_shape(sized(task.func).buffers[0])[0]
            is_disturbed = 13 <= rows <= 24 and candidates[index].sketch == "cached"
            load = 1.4 if is_disturbed else 1.0
            yield index, Measurement((load * measurement.best_secs,))


def test_load_while_kernels_are_timed_alone_costs_nothing_at_any_size() -> None:
    func, _, trials = tuned()
    search = found(DisturbedMeasurer())
    candidates = [trial.candidate for of_size in trials for trial in of_size]
    for of_size in search.matrix.sizes:
        task = workload_at(Task(func, TARGET), of_size)
        kernel = search.matrix.kernels[kernel_of(search.tree, of_size)]
        best_secs = min(formula(task, candidate).best_secs for candidate in candidates)
        assert formula(task, kernel).best_secs <= 1.1 * best_secs, of_size


@pytest.mark.parametrize(("secs", "num_asked"), [((1.0, 1.4), 2), ((1.0, 1.6), 0)])
def test_kernels_that_are_far_slower_are_not_compared(
    secs: tuple[float, float], num_asked: int
) -> None:
    asked: list[Candidate] = []

    class Comparer(FormulaMeasurer):
        def compare(
            self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
        ) -> Iterator[Sequence[Measurement]]:
            asked.extend(candidates)
            yield [Measurement((value,)) for value in secs]

    default = default_candidate()
    sizes: list[Sizes] = [{"M": 8}]
    matrix = TimeMatrix((default, default), tuple(sizes), np.array([[each] for each in secs]))
    after = compared(Task(product(), TARGET), matrix, Comparer())
    assert len(asked) == num_asked
    np.testing.assert_allclose(after.secs, matrix.secs)
