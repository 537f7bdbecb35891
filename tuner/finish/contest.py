"""The rounds of a final comparison, and what they say about its finalists.

In a round every finalist runs on the same arrays, in turns, and a coin decides who comes first; the
next round has other arrays, because where they lie in memory alone can make a quarter of the time.
A pair of finalists differs by the logarithm of the ratio of their times, one number a round, and
the signs of these numbers are tested (see `tuner.finish.signed_rank`). If two finalists are the
same, a fair coin gave each sign: so the test is exact, however heavy the tails of the noise are and
however long its bad moments last.

There are four interim analyses, after 10, 16, 24 and 36 rounds. At each, a pair is separated at a
quarter of the pair's share of `ERROR_RATE`, so all analyses together keep within that share. Who is
slower than another drops out; who is left alone is the winner. There are no further analyses where,
with confidence, the fastest can be improved on by less than `MIN_GAIN`, and no two are `CLEAR_GAP`
apart: they would cost more than they find. Among k finalists a pair's share is 2/k of the rate: to
win wrongly, one of m equal finalists must beat one given other, a one-sided event of chance
`ERROR_RATE / k`, and there are m <= k of them. So a winner is declared among equals with a chance
of at most `ERROR_RATE`. Those that are not separated in the end are tied.

A margin is a claim about all finalists: none of them is faster than the kept one by more. It is
wrong if the fastest dropped out, or if the interval of one that remains is wrong, in any of the
analyses. Each of the two has half of `ERROR_RATE`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
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
    """The finalists, by the numbers of their trials.

    Attributes:
        margin: The share of time that another schedule of the space may save against the kept one,
            at most, with a confidence of 95%. None unless `finish` was asked for it, and the rounds
            suffice for it.
    """

    finalists: tuple[Finalist, ...]
    margin: float | None = None

    @property
    def kept(self) -> Finalist | None:
        """Return the finalist to use; None if all of them failed."""
        return next((f for f in self.finalists if f.outcome is Outcome.KEPT), None)

    @property
    def is_tied(self) -> bool:
        """Return whether others may be as fast as the kept finalist."""
        return any(f.outcome is Outcome.TIED for f in self.finalists)


class Contest:
    """The rounds so far, and the remaining finalists, by their index."""

    def __init__(
        self,
        task: Task,
        trials: Sequence[MeasuredTrial],
        comparer: Comparer,
        seed: int,
        *,
        has_margin: bool = False,
    ) -> None:
        self._task = task
        self._trials = trials
        self._comparer = comparer
        self._seed = seed
        self._has_margin = has_margin
        self._error_rate = ERROR_RATE / 2 if has_margin else ERROR_RATE
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
            self._task, candidates, num_rounds - done, mixed_seed(self._seed, done)
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
        limit = self._error_rate / len(self._trials) / len(ANALYSIS_ROUNDS)
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
        if self._has_margin and self._margin(leader) == 1:
            return False
        for pair in combinations(self.remaining, 2):
            low, high = shift_interval(self._differences(*pair), ERROR_RATE)
            # The first of a pair takes at least `low` longer than the second, at most `high`.
            gain = {pair[0]: high, pair[1]: -low}.get(leader, 0.0)
            if gain >= math.log1p(MIN_GAIN) or max(-low, high) >= math.log1p(CLEAR_GAP):
                return False
        return True

    def result(self, others: Sequence[Finalist] = ()) -> Finish:
        """Return the outcome of each finalist, and of `others` before them."""
        margin = 1.0
        if self.remaining:
            leader = min(map(self._secs, self.remaining))
            same = [p for p in self.remaining if self._secs(p) <= (1 + EQUIVALENCE_MARGIN) * leader]
            # Among tied finalists take the earliest, which may be the default schedule.
            self._outcomes |= dict.fromkeys(self.remaining, Outcome.TIED) | {same[0]: Outcome.KEPT}
            margin = self._margin(same[0])
        finalists = [*others, *map(self._finalist, range(len(self._trials)))]
        by_number = tuple(sorted(finalists, key=lambda f: f.trial.number))
        return Finish(by_number, margin if self._has_margin and margin < 1 else None)

    def _margin(self, index: int) -> float:
        """Return how much less time than one finalist another one takes at most, as a share.

        It is 1 as long as the rounds are too few.
        """
        rivals = [rival for rival in self.remaining if rival != index]
        # Of the two sides of an interval, one counts.
        rate = 2 * self._error_rate / len(ANALYSIS_ROUNDS) / max(len(rivals), 1)
        gains = [shift_interval(self._differences(index, rival), rate)[1] for rival in rivals]
        return -math.expm1(-max(0.0, *gains)) if gains else 0.0

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
        return finalist_of(self._trials[index], self._rounds[index], self._outcomes[index])


def finalist_of(trial: MeasuredTrial, rounds: Sequence[Measurement], outcome: Outcome) -> Finalist:
    """Return a finalist with the statistics of its rounds."""
    if outcome is Outcome.FAILED:
        return Finalist(trial, tuple(rounds), outcome, math.inf, (math.inf, math.inf))
    times = [m.best_secs for m in rounds]
    return Finalist(trial, tuple(rounds), outcome, statistics.median(times), median_interval(times))


def mixed_seed(seed: int, done: int) -> int:
    """Return the seed of the rounds after the first `done`."""
    return seed * ANALYSIS_ROUNDS[-1] + done
