"""The tuning loop: propose a round, have it measured, learn, again until the budget is spent.

The proposals of a round depend only on the task, the seed, the strategy and what the rounds before
measured. So a job that was killed goes on from its history as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from compiler.runtime.measurement import Measurement
from tuner.candidate import default_candidate
from tuner.measurer.measurer import Measurer
from tuner.search.make import make_strategy
from tuner.search.strategy import Proposal, SearchStrategy
from tuner.task import Task
from tuner.trial import Trial, fastest

ROUND_SIZE = 16
"""Proposals in a round: enough to keep workers busy, few enough to learn often."""


class NothingMeasuredError(LookupError):
    """The trial that was asked for does not exist: tuning stopped early, or every trial failed."""


class MeasurerError(RuntimeError):
    """A measurer broke its contract."""


@dataclass(frozen=True)
class TuneResult:
    """The trials of a job, by their numbers, and the cost model that they trained, if any."""

    trials: tuple[Trial, ...]
    cost_model: bytes | None = None

    @property
    def best(self) -> Trial:
        """The fastest trial that ran and was right.

        Raises:
            NothingMeasuredError: If there is none.
        """
        best = fastest(self.trials)
        if best is None:
            raise NothingMeasuredError(f"none of {len(self.trials)} trials ran and was right")
        return best

    @property
    def default(self) -> Trial:
        """The trial of the default schedule, which may have failed.

        Raises:
            NothingMeasuredError: If tuning was stopped before it was measured.
        """
        if not self.trials or self.trials[0].number != 0:
            raise NothingMeasuredError(
                "tuning was stopped before the default schedule was measured"
            )
        return self.trials[0]


def _ignore(_: Sequence[Trial]) -> None:
    pass


def _never() -> bool:
    return False


def tune(
    task: Task,
    *,
    measurer: Measurer,
    trials: int,
    seed: int = 0,
    strategy: str = "evolutionary",
    history: Sequence[Trial] = (),
    on_trials: Callable[[Sequence[Trial]], None] = _ignore,
    should_stop: Callable[[], bool] = _never,
) -> TuneResult:
    """Search for a fast schedule of `task`.

    Trial 0 is the default schedule, so the best is never slower than it.

    Args:
        trials: The budget, counted from trial 0 with `history` included.
        strategy: One of `tuner.search.make.STRATEGIES`.
        history: What this job (same task, seed and strategy) has measured already, in any order;
            its last round may be partial. Nothing of it is measured again.
        on_trials: Called with new trials as they arrive, in the order of completion.
        should_stop: Asked between results; once true, the result holds what was measured so far.

    Raises:
        ValueError: If `trials` is not positive, `seed` is negative, a number occurs twice in
            `history`, or the strategy is unknown.
        MeasurerError: If the measurer leaves a candidate out or answers it twice.
    """
    if trials < 1:
        raise ValueError(f"trials must be positive, not {trials}")
    if seed < 0:
        raise ValueError(f"seed must not be negative, not {seed}")
    job = _Job(
        task,
        measurer,
        budget=trials,
        on_trials=on_trials,
        should_stop=should_stop,
        history=history,
    )
    search = make_strategy(strategy, task, seed)
    for number in range(-(-trials // ROUND_SIZE)):
        if not job.run_round(number, search):
            break
    return TuneResult(job.trials(), search.learned())


class _Job:
    """The state of one run of `tune`."""

    def __init__(
        self,
        task: Task,
        measurer: Measurer,
        *,
        budget: int,
        on_trials: Callable[[Sequence[Trial]], None],
        should_stop: Callable[[], bool],
        history: Sequence[Trial],
    ) -> None:
        self._task = task
        self._measurer = measurer
        self._budget = budget
        self._on_trials = on_trials
        self._should_stop = should_stop
        self._trials = {t.number: t for t in history}
        if len(self._trials) != len(history):
            raise ValueError("a trial number occurs twice in the history")

    def trials(self) -> tuple[Trial, ...]:
        return tuple(trial for _, trial in sorted(self._trials.items()))

    def run_round(self, number: int, search: SearchStrategy) -> bool:
        """Measure what a round lacks and tell the search; return whether to go on."""
        if self._should_stop():
            return False
        numbers = range(number * ROUND_SIZE, (number + 1) * ROUND_SIZE)
        wanted = numbers[: max(0, self._budget - numbers.start)]
        is_last = len(wanted) < ROUND_SIZE
        if any(n not in self._trials for n in wanted):
            proposals = _propose(search, number)
            # A round is proposed in full even where the budget cuts it, so that a job with a
            # larger budget begins like this one.
            is_last = is_last or len(proposals) < ROUND_SIZE
            missing = [n for n in wanted if n not in self._trials]
            measured = {t.candidate.key for t in self._trials.values()}
            fresh = [p for p in proposals if p.candidate.key not in measured]
            if not self._measure(number, list(zip(missing, fresh, strict=False))):
                return False
        search.tell([self._trials[n] for n in numbers if n in self._trials])
        return not is_last

    def _measure(self, round_number: int, batch: list[tuple[int, Proposal]]) -> bool:
        """Measure a batch of numbered proposals; return False if told to stop."""
        best = fastest(self._trials.values())
        waiting = dict(enumerate(batch))
        with _results(
            self._measurer,
            self._task,
            [p for _, p in batch],
            None if best is None else best.best_secs,
        ) as results:
            for index, measurement in results:
                if index not in waiting:
                    raise MeasurerError(f"the measurer answered candidate {index} unasked or twice")
                number, proposal = waiting.pop(index)
                trial = Trial(
                    number, proposal.candidate, measurement, proposal.predicted, round_number
                )
                self._trials[number] = trial
                self._on_trials([trial])
                if self._should_stop():
                    return False
        if waiting:
            raise MeasurerError(f"the measurer left out {len(waiting)} of {len(batch)} candidates")
        return True


def _propose(search: SearchStrategy, round_number: int) -> list[Proposal]:
    if round_number > 0:
        return search.ask(ROUND_SIZE)
    return [Proposal(default_candidate()), *search.ask(ROUND_SIZE - 1)]


@contextmanager
def _results(
    measurer: Measurer, task: Task, proposals: Sequence[Proposal], incumbent_secs: float | None
) -> Iterator[Iterator[tuple[int, Measurement]]]:
    """Start measuring, and see that what is left is abandoned at the end."""
    results = measurer.measure(task, [p.candidate for p in proposals], incumbent_secs)
    try:
        yield results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()
