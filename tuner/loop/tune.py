"""The tuning loop: propose a round, have it measured, learn, again until a budget is spent.

The proposals of a round depend only on the task, the seed, the strategy, the warm start and what
the rounds before measured. So a job that was killed goes on from its history as if nothing had
happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from compiler.target.cores import available_cores
from tuner.loop.budget import Budget, StopReason
from tuner.loop.search_loop import ROUND_SIZE, MeasurerError, SearchLoop
from tuner.measurer.measurer import Measurer
from tuner.search.make import make_strategy
from tuner.task import Task
from tuner.trial import MeasuredTrial, fastest
from tuner.warm_start import COLD, WarmStart

__all__ = ["ROUND_SIZE", "MeasurerError", "NothingMeasuredError", "SearchResult", "tune"]


class NothingMeasuredError(LookupError):
    """The trial that was asked for does not exist: tuning stopped early, or every trial failed."""


@dataclass(frozen=True)
class SearchResult:
    """The trials of a job, by their numbers, why it ended, and what its cost model learned."""

    trials: tuple[MeasuredTrial, ...]
    stop_reason: StopReason
    cost_model: bytes | None = None

    @property
    def best(self) -> MeasuredTrial:
        """The fastest trial that ran and was right.

        Raises:
            NothingMeasuredError: If there is none.
        """
        best = fastest(self.trials)
        if best is None:
            raise NothingMeasuredError(f"none of {len(self.trials)} trials ran and was right")
        return best

    @property
    def default(self) -> MeasuredTrial:
        """The trial of the default schedule, which may have failed.

        Raises:
            NothingMeasuredError: If tuning was stopped before it was measured.
        """
        if not self.trials or self.trials[0].number != 0:
            raise NothingMeasuredError(
                "tuning was stopped before the default schedule was measured"
            )
        return self.trials[0]


def _ignore(_: Sequence[MeasuredTrial]) -> None:
    pass


def _never() -> bool:
    return False


def tune(
    task: Task,
    *,
    measurer: Measurer,
    trials: int,
    seconds: float | None = None,
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
    """Search for a fast schedule of `task`.

    Trial 0 is the default schedule, so the best is never slower than it.

    Args:
        trials: The budget, counted from trial 0 with `history` included.
        seconds: The time from now after which the search ends; see `Budget`.
        plateau: After how many trials without progress the search ends; see `Budget`.
        strategy: One of `tuner.search.make.STRATEGIES`.
        rules: The names of the schedule rules that make the design space; None for all.
        history: What this job (same task, seed, strategy, rules and warm start) has measured
            already, in any order; its last round may be partial. Nothing of it is measured again.
        on_trials: Called with new trials as they arrive, in the order of completion.
        should_stop: Asked between results; once true, the result holds what was measured so far.
        clock: Counts the seconds.

    Raises:
        ValueError: If a budget is not positive, `seed` is negative, a number occurs twice in
            `history`, or the strategy or a rule is unknown.
        MeasurerError: If the measurer leaves a candidate out or answers it twice.
    """
    budget = Budget(trials, seconds, plateau)
    if seed < 0:
        raise ValueError(f"seed must not be negative, not {seed}")
    deadline = None if seconds is None else clock() + seconds

    def interrupted() -> StopReason | None:
        if should_stop():
            return StopReason.CANCELLED
        if deadline is not None and rounds.has_default and clock() >= deadline:
            return StopReason.TIME_BUDGET
        return None

    rounds = SearchLoop(
        task,
        measurer,
        make_strategy(strategy, task, seed, warm_start, rules),
        lambda: budget,
        history=history,
        on_trials=on_trials,
        interrupted=interrupted,
        # Where kernels are timed on all cores, what runs beside them would be timed too.
        overlap=task.target.num_cores < available_cores(),
    )
    with rounds:
        while (reason := rounds.run_next()) is None:
            pass
        return SearchResult(rounds.trials(), reason, rounds.learned())
