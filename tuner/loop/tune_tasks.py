"""Tune several tasks together: rounds go where they are expected to gain most."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack

from compiler.target.cores import available_cores
from tuner.loop.budget import Budget, StopReason
from tuner.loop.interleave import interleave
from tuner.loop.search_loop import ROUND_SIZE, SearchLoop
from tuner.loop.tune import SearchResult
from tuner.measurer.measurer import Measurer
from tuner.search.make import make_strategy
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import COLD, WarmStart


def _ignore(task: Task, trials: Sequence[MeasuredTrial]) -> None:
    pass


def _never() -> bool:
    return False


def tune_tasks(
    tasks: Sequence[Task],
    *,
    measurer: Measurer,
    trials: int,
    seconds: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    warm_starts: Mapping[str, WarmStart] | None = None,
    history: Mapping[str, Sequence[MeasuredTrial]] | None = None,
    on_trials: Callable[[Task, Sequence[MeasuredTrial]], None] = _ignore,
    should_stop: Callable[[], bool] = _never,
    clock: Callable[[], float] = time.monotonic,
) -> list[SearchResult]:
    """Search for fast schedules of tasks that share a budget by expected gain.

    Each task has a round first, and so its default schedule; see `tuner.loop.task_scheduler` for
    the rest. The weights of the tasks say how much their times matter. The same seed and
    measurements give the same search, also one that goes on from a history.

    Args:
        trials: The budget of all tasks together.
        plateau: After how many trials of a task without progress its search ends.
        rules: The names of the schedule rules that make the design spaces; None for all.
        warm_starts: What searches begin with, by the keys of tasks.
        history: What was measured already, by the keys of tasks; see `tuner.loop.tune.tune`.
        on_trials: Called with a task and its new trials as they arrive.

    Returns:
        A result for each task, in order; without cost models.

    Raises:
        ValueError: If the trials are not enough for a round of each of several tasks, two tasks
            are the same, a weight is negative, or `tune` would refuse an option.
        MeasurerError: If the measurer leaves a candidate out or answers it twice.
    """
    _check(tasks, trials)
    budget = Budget(trials, seconds, plateau)
    deadline = None if seconds is None else clock() + seconds

    def interrupted() -> StopReason | None:
        if should_stop():
            return StopReason.CANCELLED
        if deadline is not None and all(s.has_default for s in searches) and clock() >= deadline:
            return StopReason.TIME_BUDGET
        return None

    def search(task: Task) -> SearchLoop:
        return SearchLoop(
            task,
            measurer,
            make_strategy(strategy, task, seed, (warm_starts or {}).get(task.key, COLD), rules),
            lambda: budget,
            history=(history or {}).get(task.key, ()),
            on_trials=lambda measured: on_trials(task, measured),
            interrupted=interrupted,
            overlap=task.target.num_cores < available_cores(),
        )

    searches: list[SearchLoop] = []
    with ExitStack() as stack:
        searches += [stack.enter_context(search(task)) for task in tasks]
        reasons = dict(interleave(searches, lambda: trials))
        return [SearchResult(s.trials(), reasons[place]) for place, s in enumerate(searches)]


def _check(tasks: Sequence[Task], trials: int) -> None:
    if not tasks:
        raise ValueError("there are no tasks to tune")
    if len(tasks) > 1 and trials < ROUND_SIZE * len(tasks):
        raise ValueError(
            f"{trials} trials are too few for {len(tasks)} tasks: expected {ROUND_SIZE} or more a "
            "task"
        )
    if len({task.key for task in tasks}) < len(tasks):
        raise ValueError("a task occurs twice: give it once, with the sum of its weights")
    if any(task.weight < 0 for task in tasks):
        raise ValueError(f"weights must not be negative: {[task.weight for task in tasks]}")
