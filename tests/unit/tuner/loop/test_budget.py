"""When a search ends, and why: budgets of trials and seconds, plateaus, small spaces, a stop."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from tuner.candidate import DEFAULT_SKETCH, Candidate, default_candidate
from tuner.loop.budget import Budget, StopReason
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.search_result import SearchResult
from tuner.loop.tune import tune, tune_tasks
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial

TARGET = Target("cpu -mcpu=x86-64-v3 -num-cores=1")
TASK = Task(ops.matmul(64, 64, 64), TARGET)


def cost(candidate: Candidate) -> float:
    return 1.0 if candidate.sketch == DEFAULT_SKETCH else 0.5 + int(candidate.key[:4], 16) / 2**18


def run(task: Task = TASK, **options: object) -> SearchResult:
    asked = {"measurer": MemoryMeasurer(cost), "strategy": "random", "max_trials": 80, **options}
    return tune(task, **asked)  # type: ignore[arg-type]


class Clock:
    """Shows a second more whenever a candidate is measured."""

    def __init__(self) -> None:
        self.secs = 100.0

    def __call__(self) -> float:
        return self.secs

    def measurer(self) -> MemoryMeasurer:
        def tick(candidate: Candidate) -> float:
            self.secs += 1.0
            return cost(candidate)

        return MemoryMeasurer(tick)


@pytest.mark.parametrize("trials", [1, ROUND_SIZE, ROUND_SIZE + 1, 80])
def test_a_search_ends_when_its_trials_are_spent(trials: int) -> None:
    result = run(max_trials=trials)
    assert (len(result.trials), result.stop_reason) == (trials, StopReason.BUDGET)


@pytest.mark.parametrize("seconds", [5, ROUND_SIZE, ROUND_SIZE + 3])
def test_a_search_ends_when_its_seconds_are_spent(seconds: int) -> None:
    clock = Clock()
    result = run(measurer=clock.measurer(), clock=clock, max_secs=float(seconds))
    assert (len(result.trials), result.stop_reason) == (seconds, StopReason.TIME_BUDGET)
    assert result.trials == run().trials[:seconds], "a clock decides when, and not what"


@pytest.mark.parametrize("seconds", [1e-9, 1.0])
def test_the_first_proposal_is_measured_however_short_the_time_is(seconds: float) -> None:
    clock = Clock()
    result = run(measurer=clock.measurer(), clock=clock, max_secs=seconds)
    assert [t.number for t in result.trials] == [1]
    assert result.trials[0] == run().trials[1]
    assert result.stop_reason is StopReason.TIME_BUDGET


def test_the_default_schedule_comes_second_if_time_is_limited() -> None:
    clock = Clock()
    result = run(measurer=clock.measurer(), clock=clock, max_secs=2.0)
    assert [t.number for t in result.trials] == [0, 1]
    assert result.default.candidate == default_candidate()


def test_a_time_for_candidates_alone_leaves_the_default_schedule_out() -> None:
    clock = Clock()
    [result] = tune_tasks(
        [TASK],
        measurer=clock.measurer(),
        strategy="random",
        max_trials=80,
        max_secs=20.0,
        without_default=[TASK.key],
        clock=clock,
    )
    assert [t.number for t in result.trials] == list(range(1, 21))


def test_what_is_spent_first_ends_the_search() -> None:
    clock = Clock()
    result = run(measurer=clock.measurer(), clock=clock, max_secs=30.0, max_trials=20, plateau=80)
    assert result.stop_reason is StopReason.BUDGET


def test_a_search_ends_when_it_is_told_to() -> None:
    arrived: list[MeasuredTrial] = []
    result = run(on_trials=arrived.extend, should_stop=lambda: len(arrived) >= 20)
    assert (len(result.trials), result.stop_reason) == (20, StopReason.CANCELLED)
    assert result.best.best_secs == min(t.best_secs for t in arrived)


def test_a_search_ends_when_the_space_is_exhausted() -> None:
    result = run(Task(ops.matmul(2, 2, 2), TARGET), max_trials=4000)
    assert result.stop_reason is StopReason.EXHAUSTED


def progress(num_trials: int) -> MemoryMeasurer:
    """Return a measurer whose best time falls by 2% a trial at first, and by 0.01% afterwards."""
    times = np.concatenate([0.98 ** np.arange(num_trials), np.full(400, 0.98**num_trials)])
    times *= 0.9999 ** np.arange(len(times))
    answers = iter(times.tolist())
    return MemoryMeasurer(lambda _: next(answers))


def test_a_search_ends_on_a_plateau_after_a_whole_round() -> None:
    result = run(measurer=progress(20), plateau=16, max_trials=200)
    assert result.stop_reason is StopReason.PLATEAU
    # Trials 20 to 35 are the first 16 without progress; the round that holds them ends at 47.
    assert len(result.trials) == 3 * ROUND_SIZE


def test_progress_keeps_a_search_off_the_plateau() -> None:
    result = run(measurer=progress(80), plateau=16)
    assert result.stop_reason is StopReason.BUDGET


def test_as_long_as_nothing_runs_there_is_no_plateau() -> None:
    failed = Measurement(error=ErrorKind.CRASH)
    assert run(measurer=MemoryMeasurer(lambda _: failed), plateau=4).stop_reason is (
        StopReason.BUDGET
    )


def test_a_resumed_search_ends_on_the_same_plateau() -> None:
    whole = run(measurer=progress(20), plateau=16, max_trials=200)

    class Unused:
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            raise AssertionError("everything is known already")

    assert run(measurer=Unused(), plateau=16, max_trials=200, history=whole.trials) == whole


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"max_trials": 0}, "max_trials must be positive, not 0"),
        ({"max_trials": 1, "max_secs": 0.0}, "max_secs must be positive, not 0"),
        ({"max_trials": 1, "max_secs": float("nan")}, "max_secs must be positive, not nan"),
        ({"max_trials": 1, "plateau": 0}, "plateau must be a positive number of trials, not 0"),
    ],
)
def test_a_budget_that_allows_nothing_is_refused(budget: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Budget(**budget)  # type: ignore[arg-type]
