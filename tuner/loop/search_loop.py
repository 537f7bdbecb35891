"""Run one search round by round: while a round is measured, the next one is proposed.

Calls of `ask` and `tell` always come in the same order, also in a search that was interrupted and
resumed: ask 0, tell 0, ask 1, ask 2, tell 1, ask 3, tell 2, ... So a round is proposed from all
rounds but the previous one (round 1 from round 0), and the model trains while kernels are measured.
With many workers, the next rounds may begin while the last kernels of one are measured. Their
results are read once that one is complete, so that histories have one partial round at most.
Of a long history, the strategy learns the first rounds without proposing them again
(`SearchStrategy.skip`).

Of more than one round ahead, each is proposed from what was known when the first of them was. A
search that resumes then may propose other candidates than it would have without the interruption.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import count, islice, takewhile
from types import TracebackType
from typing import Self

from compiler.executor.cores import available_cores
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.loop.budget import Budget, StopReason
from tuner.measurer.measurer import Measurer
from tuner.search.strategy import Proposal, SearchStrategy
from tuner.task import Task
from tuner.trial import MeasuredTrial, fastest

ROUND_SIZE = 16
"""Proposals in a round: enough to keep workers busy, few enough to learn often.

Chosen, not measured. Stored histories are divided into rounds of this size: with another size they
would not resume.
"""


def has_spare_core(target: Target) -> bool:
    """Return whether this host can propose while a kernel for `target` is timed on it.

    Other work would slow a kernel that is timed on all cores.
    """
    return target.num_cores < available_cores()


class MeasurerError(RuntimeError):
    """A measurer broke its contract."""


@dataclass(frozen=True)
class _Begun:
    """A round whose measuring has begun.

    Attributes:
        waiting: The trials that are awaited, by the index of their candidates.
        end: How many trials were allowed when it began.
    """

    number: int
    waiting: dict[int, tuple[int, Proposal]]
    results: Iterator[tuple[int, Measurement]]
    end: int

    def close(self) -> None:
        """Abandon what has no result."""
        close = getattr(self.results, "close", None)
        if close is not None:
            close()


class SearchLoop:
    """Runs a search of one task, a round at a time. Used as a context manager.

    Args:
        budget: The budget, read at the beginning of each round: it may change meanwhile.
        history: The trials that this search has measured already, in any order; its last round may
            be partial. None of them is measured again.
        on_trials: Called with new trials as they arrive, in the order of completion.
        interrupted: Called between results; a reason ends the search at once.
        overlap: Whether to propose during measuring. The proposals are the same without it.
        num_ahead: Returns how many rounds may begin beside the current one, once they are
            proposed; only with `overlap`.
        default_at: How many candidates of the first round are measured before the default schedule,
            which is trial 0 in any case. With None it is measured only if none of the first round
            is correct.

    Raises:
        ValueError: If a number occurs twice in `history`.
    """

    def __init__(
        self,
        task: Task,
        measurer: Measurer,
        search: SearchStrategy,
        budget: Callable[[], Budget],
        *,
        history: Sequence[MeasuredTrial],
        on_trials: Callable[[Sequence[MeasuredTrial]], None],
        interrupted: Callable[[], StopReason | None],
        overlap: bool,
        num_ahead: Callable[[], int] = lambda: 0,
        default_at: int | None = 0,
    ) -> None:
        self.task = task
        self._measurer = measurer
        self._search = search
        self._budget = budget
        self._on_trials = on_trials
        self._interrupted = interrupted
        self._overlap = overlap
        self._num_ahead = num_ahead if overlap else lambda: 0
        self._default_at = default_at
        self._trials = {t.number: t for t in history}
        if len(self._trials) != len(history):
            raise ValueError("a trial number occurs twice in the history")
        self._keys = {t.candidate.key for t in history}
        self._best = fastest(history)
        self._next = self._num_skipped()
        self._num_told = 0
        self._begun: deque[_Begun] = deque()  # the next rounds that began beside this one
        # One thread calls `ask` and `tell`, in the order of submission.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        # The rounds from `_next` on, as far as they are proposed; the first of them have begun.
        self._coming: deque[Future[list[Proposal]]] = deque()
        if self._next:
            self._prepare(self._next - 1)
        else:
            self._coming.append(self._thread.submit(self._first))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._abandon_begun()
        self._thread.shutdown(wait=True, cancel_futures=True)

    @property
    def num_measured(self) -> int:
        """Return the number of trials, including those of the history."""
        return len(self._trials)

    @property
    def is_midway(self) -> bool:
        """Return whether the next round was begun, but not ended, before an interruption."""
        return max(self._trials, default=-1) >= self._next * ROUND_SIZE

    @property
    def has_result(self) -> bool:
        """Return whether a time limit may end the search.

        The default schedule was measured, or another is correct that came before it.
        """
        is_correct = self._default_at != 0 and fastest(self._trials.values()) is not None
        return is_correct or 0 in self._trials

    def trials(self) -> tuple[MeasuredTrial, ...]:
        """Return the trials of all rounds, including the history, by number."""
        return tuple(trial for _, trial in sorted(self._trials.items()))

    def measured_trials(self) -> tuple[MeasuredTrial, ...]:
        """Return the trials of the rounds that were run, by number, without other history."""
        end = self._next * ROUND_SIZE
        return tuple(trial for trial in self.trials() if trial.number < end)

    def learned(self) -> bytes | None:
        """Return the cost model, trained on every round; no round may be run afterwards."""
        untold = self._untold(self._next)

        def learn() -> bytes | None:
            self._tell(untold)
            return self._search.learned()

        return self._thread.submit(learn).result()

    def replay(self) -> StopReason | None:
        """Advance to the first round that is incomplete in the history; see `run_next`."""
        while self._has_round(self._next):
            if (reason := self.run_next()) is not None:
                return reason
        return None

    def interrupted(self) -> StopReason | None:
        """Return why the search ends, if it is interrupted now."""
        return self._interrupted()

    def run_next(self, max_more: int | None = None) -> StopReason | None:
        """Measure the missing trials of the next round; return why the search ends, if it does.

        Args:
            max_more: The limit on additional trials, independent of the budget.
        """
        if (reason := self._run_next(max_more)) is not None:
            self._abandon_begun()
        return reason

    def _run_next(self, max_more: int | None) -> StopReason | None:
        if (reason := self._interrupted()) is not None:
            return reason
        budget = self._budget()
        if max_more is not None:
            most = max(1, self.num_measured + max_more)
            budget = replace(budget, max_trials=min(budget.max_trials, most))
        number = self._next
        if number * ROUND_SIZE >= budget.max_trials:
            return StopReason.BUDGET
        proposals = self._coming[0].result()
        self._coming.popleft()
        self._next += 1
        is_exhausted = len(proposals) < ROUND_SIZE
        is_last = is_exhausted or self._next * ROUND_SIZE >= budget.max_trials
        num_ahead = 0 if is_exhausted else self._num_ahead_of(number, budget)
        if self._overlap and number > 0 and not is_last:
            self._prepare(number, max(1, num_ahead))
        if (reason := self._measure_round(number, proposals, budget, num_ahead)) is not None:
            return reason
        if is_last:
            # The space may hold more candidates than the budget allows.
            is_cut = len(self._trials) >= budget.max_trials
            return StopReason.BUDGET if is_cut else StopReason.EXHAUSTED
        if budget.plateau is not None and budget.is_on_plateau(self.measured_trials()):
            return StopReason.PLATEAU
        if number == 0:
            self._prepare(1)
        elif not self._overlap:
            self._prepare(number)
            wait(self._coming)  # another task may be measured next
        return None

    def _prepare(self, num_known: int, num: int = 1) -> None:
        """Start to propose the next `num` rounds, as far as they are not yet, from `num_known`."""
        while len(self._coming) < num:
            self._coming.append(self._thread.submit(self._propose, self._untold(num_known)))

    def _propose(self, untold: Sequence[Sequence[MeasuredTrial]]) -> list[Proposal]:
        self._tell(untold)
        return self._search.ask(ROUND_SIZE)

    def _num_skipped(self) -> int:
        """Return how many rounds of the history the strategy need not propose again.

        At least one complete round is left, after which the loop may find that the search ends.
        """
        complete = list(takewhile(self._has_round, count()))
        return self._search.skip(
            [[t.candidate for t in self._round(number) if t.number] for number in complete[:-1]]
        )

    def _round(self, number: int) -> list[MeasuredTrial]:
        """Return the trials of a round, by number, as far as there are any."""
        start = number * ROUND_SIZE
        numbers = range(start, start + ROUND_SIZE)
        return [self._trials[n] for n in numbers if n in self._trials]

    def _first(self) -> list[Proposal]:
        return [Proposal(default_candidate()), *self._search.ask(ROUND_SIZE - 1)]

    def _tell(self, rounds: Sequence[Sequence[MeasuredTrial]]) -> None:
        for trials in rounds:
            self._search.tell(trials)

    def _untold(self, end: int) -> list[list[MeasuredTrial]]:
        """Return the rounds before `end` that the strategy lacks; the caller passes them on."""
        first_round, self._num_told = self._num_told, max(self._num_told, end)
        return [self._round(number) for number in range(first_round, end)]

    def _has_round(self, number: int) -> bool:
        start = number * ROUND_SIZE
        return all(n in self._trials for n in range(start, start + ROUND_SIZE))

    def _measure_round(
        self, number: int, proposals: Sequence[Proposal], budget: Budget, num_ahead: int
    ) -> StopReason | None:
        """Measure a round, and the default schedule at last if it was left out in vain."""
        if self._begun:
            begun = self._begun.popleft()
        else:
            begun = self._begin(number, proposals, budget.max_trials)
        reason = self._collect(begun, num_ahead)
        if reason is not None or self.has_result:
            return reason
        self._default_at = 0
        return self._collect(self._begin(number, proposals[:1], budget.max_trials))

    def _num_ahead_of(self, number: int, budget: Budget) -> int:
        """Return how many rounds may begin beside one: those certain to be measured whole."""
        if number == 0 or budget.plateau is not None:
            return 0
        num_whole = budget.max_trials // ROUND_SIZE - (number + 1)
        return max(0, min(self._num_ahead(), num_whole))

    def _begin(self, number: int, proposals: Sequence[Proposal], end: int) -> _Begun:
        """Begin to measure the missing proposals of a round."""
        start = number * ROUND_SIZE
        # A round is proposed in full even if the budget cuts it, so that a search with a
        # larger budget begins like this one.
        round_numbers = range(start, min(start + ROUND_SIZE, end))
        missing = [n for n in round_numbers if n not in self._trials]
        fresh = [p for p in proposals if p.candidate.key not in self._keys]
        pairs = list(zip(missing, fresh, strict=False))
        if pairs and pairs[0][0] == 0:
            default = pairs.pop(0)
            if self._default_at is not None:
                pairs.insert(self._default_at, default)
        results = self._results([p.candidate for _, p in pairs]) if pairs else iter(())
        return _Begun(number, dict(enumerate(pairs)), results, end)

    def _begin_ahead(self, number: int, end: int, num_ahead: int) -> None:
        """Begin the rounds after one that are proposed; an error of a proposal comes later."""
        for coming in islice(self._coming, len(self._begun), num_ahead):
            if not coming.done() or coming.exception() is not None:
                return
            next_number = number + 1 + len(self._begun)
            self._begun.append(self._begin(next_number, coming.result(), end))

    def _abandon_begun(self) -> None:
        while self._begun:
            self._begun.popleft().close()

    def _collect(self, begun: _Begun, num_ahead: int = 0) -> StopReason | None:
        """Read the results of a round, and begin others; return why some were not measured."""
        waiting, size = begun.waiting, len(begun.waiting)
        try:
            for index, measurement in self._until_interrupted(begun.results):
                if index not in waiting:
                    raise MeasurerError(f"the measurer answered candidate {index} unasked or twice")
                n, proposal = waiting.pop(index)
                trial = MeasuredTrial(
                    n, proposal.candidate, measurement, proposal.predicted, begun.number
                )
                self._add(trial)
                self._on_trials([trial])
                if waiting and (reason := self._ends_amid(begun.end)) is not None:
                    return reason
                self._begin_ahead(begun.number, begun.end, num_ahead)
        finally:
            begun.close()
        if waiting and (reason := self._interrupted()) is not None:
            return reason
        if waiting:
            raise MeasurerError(f"the measurer left out {len(waiting)} of {size} candidates")
        return None

    def _add(self, trial: MeasuredTrial) -> None:
        self._trials[trial.number] = trial
        self._keys.add(trial.candidate.key)
        self._best = fastest([trial] if self._best is None else [self._best, trial])

    def _ends_amid(self, end: int) -> StopReason | None:
        """Return why a round ends that began when `end` trials were allowed."""
        if (reason := self._interrupted()) is not None:
            return reason
        max_trials = self._budget().max_trials
        return StopReason.BUDGET if max_trials < end and max_trials <= len(self._trials) else None

    def _until_interrupted(
        self, results: Iterator[tuple[int, Measurement]]
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield results; an error of a measurement that was interrupted is ignored."""
        while True:
            try:
                result = next(results, None)
            except Exception:
                if self._interrupted() is None:
                    raise
                return
            if result is None:
                return
            yield result

    def _results(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, Measurement]]:
        """Start measuring; an error of a search that was interrupted is ignored."""
        incumbent_secs = None if self._best is None else self._best.best_secs
        try:
            return self._measurer.measure(self.task, candidates, incumbent_secs)
        except Exception:
            if self._interrupted() is None:
                raise
            return iter(())
