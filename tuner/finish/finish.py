"""The finish: the best candidates of a search are measured again, side by side, until one wins.

Each was timed once, at a moment of its own, and the fastest of many was lucky also. Here they are
timed in rounds. In a round every finalist runs on the same arrays, in turns, and a coin decides who
comes first; the next round has other arrays, because where they lie in memory alone can make a
quarter of the time. A pair of finalists differs by the logarithm of the ratio of their times, one
number a round, and the signs of these numbers are tested (see `tuner.finish.signed_rank`).
If two finalists are the same, a fair coin gave each sign: so the test is exact, however heavy the
tails of the noise are and however long its bad moments last.

There are four interim analyses, after 10, 16, 24 and 36 rounds. At each, a pair is separated at a
quarter of the pair's share of `ERROR_RATE`, so all analyses together keep within that share. Who is
slower than another drops out; who is left alone is the winner. There are no further analyses where,
with confidence, the fastest can be improved on by less than `MIN_GAIN`, and no two are `CLEAR_GAP`
apart: they would cost more than they find. Among k finalists a pair's share is 2/k of the rate: to
win wrongly, one of m equal finalists must beat one given other, a one-sided event of chance
`ERROR_RATE / k`, and there are m <= k of them. So a winner is declared among equals with a chance
of at most `ERROR_RATE`. Those that are not separated in the end are tied.

The default schedule is timed in rounds as well, after the finalists if it is far slower than they
are: what is claimed of the winner is its speed-up over the default, and a ratio needs two times of
one kind.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, permutations

from compiler.runtime.measurement import Measurement
from tuner.finish.signed_rank import median_interval, p_slower, shift_interval
from tuner.measurer.comparer import Comparer
from tuner.task import Task
from tuner.trial import MeasuredTrial

ANALYSIS_ROUNDS = (10, 16, 24, 36)
"""Rounds after which finalists are compared. Each step is about half as long again as the last: few
analyses, so that each has a large share of `ERROR_RATE`. Chosen.
"""
ERROR_RATE = 0.05
"""Chance that a winner is declared among equals: the usual 5%."""
EQUIVALENCE_MARGIN = 0.01
"""A relative difference of time that is practically irrelevant. Chosen."""
MIN_GAIN = 0.03
"""The comparison ends if, with confidence, less than this share of the time can be gained. Chosen.
"""
CLEAR_GAP = 0.08
"""A relative difference that the comparison must detect, even if it cannot gain anything. Chosen.
"""
NUM_FINALISTS = 4
"""At most so many, and the default. The time of a comparison grows with each, and so does the
number of pairs that share `ERROR_RATE`. Chosen.
"""
FINALIST_RATIO = 1.25
"""A trial of this multiple of the best time, or more, is no finalist. The location of arrays in
memory alone can change a time by a quarter (see the head of this file).
"""
MAX_TIME_SHARE = 0.1
"""Share of the time of the trials after which there are no further analyses. Chosen, so that a
search spends its time on candidates.
"""
LEAST_SECS = 5.0
"""Time for further analyses in any case: a short search has little time to take a tenth of. Chosen.
"""
MAX_SECS = 20.0
"""After this time the current round is the last: a user waits for the result. Chosen."""
_ROUND_SECS = 8e-3
"""Time of a finalist in a round beside its runs: other arrays, and loading the kernel. 5 to 8 ms
for workloads of 0.1 to 1.4 ms on a Zen 3.
"""
_ROUND_RUNS = 5
"""Runs of a finalist in a round: one to warm up, and samples; see `workers.measure.compare`."""
_NUM_ATTEMPTS = 3
"""If all finalists fail, the next best replace them, so often. Chosen: three sets of failures point
to a broken host.
"""
DEFAULT_ROUNDS = 10
"""Rounds of a default schedule that is no finalist, fewer of a slow one: as many as before the
first analysis.
"""
MAX_DEFAULT_SECS = 3.0
"""The default is not timed again if `_LEAST_ROUNDS` would take longer. Chosen."""
_LEAST_ROUNDS = 6
"""The fewest rounds that give an interval of 95%: 2 / 2**6 is below 0.05."""
_RUNS_A_ROUND = 2
"""At least: one run to warm up, and one sample."""


class Outcome(StrEnum):
    """The result of a finalist."""

    KEPT = "kept"  # the winner; among tied finalists, the one to use
    TIED = "tied"  # not separated from the kept finalist
    SLOWER = "slower"  # than another finalist
    FAILED = "failed"  # it failed when it was measured again


@dataclass(frozen=True)
class Finalist:
    """A trial that was measured again.

    Attributes:
        rounds: The measurements, round by round; a failure is the last of them.
        run_secs: The median over rounds, of the shortest sample of each; infinity for a failure.
        interval: The 95% confidence interval of that median.
    """

    trial: MeasuredTrial
    rounds: tuple[Measurement, ...]
    outcome: Outcome
    run_secs: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Finish:
    """The finalists, by the numbers of their trials."""

    finalists: tuple[Finalist, ...]

    @property
    def kept(self) -> Finalist | None:
        """Return the finalist to use; None if all of them failed."""
        return next((f for f in self.finalists if f.outcome is Outcome.KEPT), None)

    @property
    def is_tied(self) -> bool:
        """Return whether others may be as fast as the kept finalist."""
        return any(f.outcome is Outcome.TIED for f in self.finalists)


def _never() -> bool:
    return False


def finish(
    task: Task,
    trials: Sequence[MeasuredTrial],
    comparer: Comparer,
    *,
    seed: int = 0,
    also: Collection[int] = (),
    max_secs: float | None = None,
    should_stop: Callable[[], bool] = _never,
    clock: Callable[[], float] = time.monotonic,
) -> Finish | None:
    """Measure the best of `trials` again until one wins, or they are tied.

    Args:
        also: The numbers of trials to measure again in any case.
        max_secs: A limit on the time, if it is shorter than `MAX_SECS`. Below `LEAST_SECS` there
            are only as many finalists as it suffices for, and one analysis.

    Returns:
        The result; None if there is nothing to measure, the time does not suffice for two
        finalists, or `should_stop` returned true meanwhile.
    """
    if task.target.is_emulated:
        return None  # an estimate is the same each time
    most_secs = MAX_SECS if max_secs is None else min(max_secs, MAX_SECS)
    if most_secs < LEAST_SECS:
        return _short_finish(task, trials, comparer, seed, most_secs, should_stop)
    start_secs = clock()
    enough_secs = max(LEAST_SECS, MAX_TIME_SHARE * sum(_secs(t.measurement) for t in trials))
    failed: list[Finalist] = []
    for _ in range(_NUM_ATTEMPTS):
        failed_numbers = {f.trial.number for f in failed}
        finalists = choose_finalists([t for t in trials if t.number not in failed_numbers], also)
        if not finalists:
            break
        final = _Final(task, finalists, comparer, seed)
        for _ in final.play(lambda: clock() - start_secs > enough_secs):
            if should_stop():
                return None
            if clock() - start_secs > most_secs:
                final.analyse()
                break
        if final.remaining:
            comparison = final.result(failed)
            if clock() - start_secs > most_secs:
                return comparison
            return _with_default(
                comparison, task, trials, comparer, seed=seed, should_stop=should_stop
            )
        # All of them failed, although their trials did not: the next best replace them.
        failed += final.result().finalists
    return Finish(tuple(failed)) if failed else None


def _short_finish(  # noqa: PLR0917
    task: Task,
    trials: Sequence[MeasuredTrial],
    comparer: Comparer,
    seed: int,
    max_secs: float,
    should_stop: Callable[[], bool],
) -> Finish | None:
    """Compare as many finalists as `max_secs` suffices for, in six to ten rounds.

    The default schedule is among them only if it is one of the fastest. The time of building is not
    counted: a child still has the kernels of a short search.
    """
    best = sorted(choose_finalists(trials), key=lambda t: (t.best_secs, t.number))[:NUM_FINALISTS]
    round_secs = [_ROUND_SECS + _ROUND_RUNS * trial.best_secs for trial in best]
    for num in range(len(best), 0, -1):
        num_rounds = int(max_secs / sum(round_secs[:num]))
        if num_rounds >= _LEAST_ROUNDS:
            break
    else:
        return None
    if num == 1 < len(best):
        return None
    finalists = sorted(best[:num], key=lambda t: t.number)
    final = _Final(task, finalists, comparer, seed)
    for _ in final.measure(min(num_rounds, ANALYSIS_ROUNDS[0])):
        if should_stop():
            return None
    final.analyse()
    return final.result()


def _with_default(
    comparison: Finish,
    task: Task,
    trials: Sequence[MeasuredTrial],
    comparer: Comparer,
    *,
    seed: int,
    should_stop: Callable[[], bool],
) -> Finish | None:
    """Add the default schedule to a final comparison that it was too slow for, if that is cheap."""
    default = next((t for t in trials if t.number == 0 and t.measurement.ok), None)
    if default is None or any(f.trial is default for f in comparison.finalists):
        return comparison
    affordable = int(MAX_DEFAULT_SECS / (_RUNS_A_ROUND * default.best_secs))
    if affordable < _LEAST_ROUNDS:
        return comparison
    num_rounds = min(DEFAULT_ROUNDS, affordable)
    rounds: list[Measurement] = []
    for (measured,) in comparer.compare(
        task, [default.candidate], num_rounds, _mixed(seed, ANALYSIS_ROUNDS[-1] - 1)
    ):
        if should_stop():
            return None
        rounds.append(measured)
        if not measured.ok:
            return comparison  # its provisional time, from the trial, must suffice
    if not rounds:
        return comparison
    default_finalist = _finalist_of(default, rounds, Outcome.SLOWER)
    return Finish((default_finalist, *comparison.finalists))


def _finalist_of(trial: MeasuredTrial, rounds: Sequence[Measurement], outcome: Outcome) -> Finalist:
    """Return a finalist with the statistics of its rounds."""
    if outcome is Outcome.FAILED:
        return Finalist(trial, tuple(rounds), outcome, math.inf, (math.inf, math.inf))
    times = [m.best_secs for m in rounds]
    return Finalist(trial, tuple(rounds), outcome, statistics.median(times), median_interval(times))


def choose_finalists(
    trials: Sequence[MeasuredTrial], also: Collection[int] = ()
) -> list[MeasuredTrial]:
    """Return the best trials that are close to each other, by number; the default if it is close.

    Trials that are a quarter slower are not worth timing again, unless an earlier final comparison
    kept them (`also`).
    """
    correct = sorted((t for t in trials if t.measurement.ok), key=lambda t: (t.best_secs, t.number))
    close = [t for t in correct if t.best_secs < FINALIST_RATIO * correct[0].best_secs]
    chosen = close[:NUM_FINALISTS] + [t for t in close[NUM_FINALISTS:] if t.number == 0]
    chosen += [t for t in correct if t.number in also and t not in chosen]
    return sorted(chosen, key=lambda t: t.number)


class _Final:
    """The rounds so far, and the remaining finalists, by their index."""

    def __init__(
        self, task: Task, trials: Sequence[MeasuredTrial], comparer: Comparer, seed: int
    ) -> None:
        self._task = task
        self._trials = trials
        self._comparer = comparer
        self._seed = seed
        self._rounds: list[list[Measurement]] = [[] for _ in trials]
        self._outcomes: dict[int, Outcome] = {}
        self.remaining = list(range(len(trials)))

    def play(self, is_enough: Callable[[], bool]) -> Iterator[None]:
        """Measure round by round, until the winner is decided or the budget is spent."""
        for num_rounds in ANALYSIS_ROUNDS:
            yield from self.measure(num_rounds)
            self.analyse()
            if self.is_decided() or is_enough():
                return

    def measure(self, num_rounds: int) -> Iterator[None]:
        """Measure the remaining finalists until there are `num_rounds` rounds, one a step."""
        done = max(map(len, self._rounds))
        indices = list(self.remaining)
        candidates = [self._trials[index].candidate for index in indices]
        results = self._comparer.compare(
            self._task, candidates, num_rounds - done, _mixed(self._seed, done)
        )
        for measured in results:
            for index, measurement in zip(indices, measured, strict=True):
                if index not in self._outcomes:
                    self._rounds[index].append(measurement)
                    if not measurement.ok:
                        self._drop(index, Outcome.FAILED)
            yield

    def analyse(self) -> None:
        """Drop each finalist that is slower than another."""
        # One-sided, and one analysis of several: see the head of this file.
        limit = ERROR_RATE / len(self._trials) / len(ANALYSIS_ROUNDS)
        slower = {
            index
            for index, rival in permutations(self.remaining, 2)
            if p_slower(self._differences(index, rival)) <= limit
        }
        for loser in slower:
            self._drop(loser, Outcome.SLOWER)

    def is_decided(self) -> bool:
        """Return whether little can be gained: one finalist is left, or all are almost equal."""
        if len(self.remaining) < 2:
            return True
        leader = min(self.remaining, key=self._secs)
        for pair in combinations(self.remaining, 2):
            low, high = shift_interval(self._differences(*pair), ERROR_RATE)
            # The first of a pair takes at least `low` longer than the second, at most `high`.
            gain = {pair[0]: high, pair[1]: -low}.get(leader, 0.0)
            if gain >= math.log1p(MIN_GAIN) or max(-low, high) >= math.log1p(CLEAR_GAP):
                return False
        return True

    def result(self, others: Sequence[Finalist] = ()) -> Finish:
        """Return the outcome of each finalist, and of `others` before them."""
        if self.remaining:
            leader = min(map(self._secs, self.remaining))
            same = [p for p in self.remaining if self._secs(p) <= (1 + EQUIVALENCE_MARGIN) * leader]
            # Among tied finalists take the earliest, which may be the default schedule.
            self._outcomes |= dict.fromkeys(self.remaining, Outcome.TIED) | {same[0]: Outcome.KEPT}
        finalists = [*others, *map(self._finalist, range(len(self._trials)))]
        return Finish(tuple(sorted(finalists, key=lambda f: f.trial.number)))

    def _differences(self, index: int, rival: int) -> list[float]:
        """Return the logarithms of the ratio of the times of `index` and `rival`, by round."""
        pairs = zip(self._rounds[index], self._rounds[rival], strict=True)
        return [math.log(a.best_secs / b.best_secs) for a, b in pairs]

    def _drop(self, index: int, outcome: Outcome) -> None:
        self._outcomes[index] = outcome
        self.remaining.remove(index)

    def _secs(self, index: int) -> float:
        return statistics.median(m.best_secs for m in self._rounds[index])

    def _finalist(self, index: int) -> Finalist:
        return _finalist_of(self._trials[index], self._rounds[index], self._outcomes[index])


def _secs(measurement: Measurement) -> float:
    return measurement.build_secs + measurement.check_secs + measurement.time_secs


def _mixed(seed: int, done: int) -> int:
    """Return the seed of the rounds after the first `done`."""
    return seed * ANALYSIS_ROUNDS[-1] + done
