"""The tuning loop: propose a round, measure it, learn from it, until a budget is spent.

One task is tuned as a group of one. The proposals of a round depend only on the task, the seed, the
strategy, the warm start and the measurements of the rounds before, so that a killed job resumes
from its history as if it had never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack

from tuner.loop.budget import Budget, StopReason
from tuner.loop.interleave import interleave
from tuner.loop.search_loop import ROUND_SIZE, SearchLoop, has_spare_core
from tuner.loop.search_result import SearchResult
from tuner.measurer.measurer import Measurer
from tuner.search.make import make_strategy
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import COLD, WarmStart


def _ignore(_: Sequence[MeasuredTrial]) -> None:
    pass


def _ignore_of_task(task: Task, trials: Sequence[MeasuredTrial]) -> None:
    pass


def _never() -> bool:
    return False


def tune(
    task: Task,
    *,
    measurer: Measurer,
    max_trials: int,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    warm_start: WarmStart = COLD,
    history: Sequence[MeasuredTrial] = (),
    on_trials: Callable[[Sequence[MeasuredTrial]], None] = _ignore,
    should_stop: Callable[[], bool] = _never,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Search for a fast schedule of one task; see `tune_tasks`.

    Trial 0 is the default schedule, so the best is never slower than it, unless `max_secs` ended
    the search before it was measured.
    """
    [result] = tune_tasks(
        [task],
        measurer=measurer,
        max_trials=max_trials,
        max_secs=max_secs,
        plateau=plateau,
        seed=seed,
        strategy=strategy,
        rules=rules,
        warm_starts={task.key: warm_start},
        history={task.key: history},
        on_trials=lambda _, measured: on_trials(measured),
        should_stop=should_stop,
        clock=clock,
    )
    return result


def tune_tasks(
    tasks: Sequence[Task],
    *,
    measurer: Measurer,
    max_trials: int,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    warm_starts: Mapping[str, WarmStart] | None = None,
    history: Mapping[str, Sequence[MeasuredTrial]] | None = None,
    on_trials: Callable[[Task, Sequence[MeasuredTrial]], None] = _ignore_of_task,
    should_stop: Callable[[], bool] = _never,
    without_default: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> list[SearchResult]:
    """Search for fast schedules of tasks that share a budget by expected gain.

    Each task has one round first, and so its default schedule; `tuner.loop.task_scheduler` assigns
    the remaining rounds. The weight of a task says how much its time matters. The same seed and
    measurements give the same search, also for one that resumes from a history.

    Args:
        max_trials: The budget of all tasks together, counted with `history` included.
        max_secs: The time from now after which each search ends, once it has a correct trial. The
            default schedules are measured second then: time may suffice for one trial only.
        plateau: After how many trials of a task without progress its search ends; see `Budget`.
        strategy: One of `tuner.search.make.STRATEGIES`.
        rules: The names of the schedule rules that make the design spaces; None for all.
        warm_starts: The warm starts of searches, by the keys of tasks.
        history: The trials that this job (same tasks, seed, strategy, rules and warm starts) has
            measured already, by the keys of tasks, in any order; the last round may be partial.
            None of these trials is measured again.
        on_trials: Called with a task and its new trials as they arrive, in the order of completion.
        should_stop: Called between results; once it returns true, the results hold the trials
            measured so far.
        without_default: The keys of tasks whose default schedule is not measured, unless no other
            trial is correct: there is no time for it.
        clock: Returns the current time in seconds.

    Returns:
        A result for each task, in order, without a cost model: one more training would keep the
        caller waiting, and the service asks its search loops for theirs.

    Raises:
        ValueError: If a budget is not positive or too small for a round of each of several tasks,
            two tasks are the same, a weight or `seed` is negative, a trial number occurs twice in a
            history, or the strategy or a rule is unknown.
        MeasurerError: If the measurer leaves a candidate out or answers it twice.
    """
    _check(tasks, max_trials)
    budget = Budget(max_trials, max_secs, plateau)
    if seed < 0:
        raise ValueError(f"seed must not be negative, not {seed}")
    deadline = None if max_secs is None else clock() + max_secs

    def start(task: Task) -> SearchLoop:
        def interrupted() -> StopReason | None:
            if should_stop():
                return StopReason.CANCELLED
            # Those without a correct trial go on to their first, without waiting for whole rounds.
            if deadline is not None and search.has_result and clock() >= deadline:
                return StopReason.TIME_BUDGET
            return None

        search = SearchLoop(
            task,
            measurer,
            make_strategy(strategy, task, seed, (warm_starts or {}).get(task.key, COLD), rules),
            lambda: budget,
            history=(history or {}).get(task.key, ()),
            on_trials=lambda measured: on_trials(task, measured),
            interrupted=interrupted,
            overlap=has_spare_core(task.target),
            default_at=None if task.key in without_default else int(max_secs is not None),
        )
        return search

    with ExitStack() as stack:
        searches = [stack.enter_context(start(task)) for task in tasks]
        reasons = dict(interleave(searches, lambda: max_trials))
        return [
            SearchResult(search.trials(), reasons[index]) for index, search in enumerate(searches)
        ]


def _check(tasks: Sequence[Task], max_trials: int) -> None:
    if not tasks:
        raise ValueError("there are no tasks to tune")
    if len(tasks) > 1 and max_trials < ROUND_SIZE * len(tasks):
        raise ValueError(
            f"{max_trials} trials are too few for {len(tasks)} tasks: expected {ROUND_SIZE} or more"
            " a task"
        )
    if len({task.key for task in tasks}) < len(tasks):
        raise ValueError("a task is duplicated: list it once, with the sum of its weights")
    if any(task.weight < 0 for task in tasks):
        raise ValueError(f"weights must not be negative: {[task.weight for task in tasks]}")
