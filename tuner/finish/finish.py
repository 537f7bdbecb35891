"""The finish: the best candidates of a search are measured again, side by side, until one wins.

Each was timed once, at a moment of its own, and the fastest of many was lucky also. Here they are
timed in rounds, side by side (`tuner.finish.contest`).

The default schedule is timed in rounds as well, after the finalists if it is far slower than they
are: what is claimed of the winner is its speed-up over the default, and a ratio needs two times of
one kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from compiler.runtime.measurement import Measurement
from tuner.finish.contest import (
    ANALYSIS_ROUNDS,
    Contest,
    Finalist,
    Finish,
    Outcome,
    finalist_of,
    mixed_seed,
)
from tuner.measurer.comparer import Comparer
from tuner.task import Task
from tuner.trial import MeasuredTrial

NUM_FINALISTS = 4
"""At most so many, and the default. The time of a comparison grows with each, and so does the
number of pairs that share `ERROR_RATE`. Chosen.
"""
NUM_WHOLE_FINALISTS = 64
"""The same if all schedules of a space were measured: their comparison takes about 8 s. Chosen."""
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
MAX_DEFAULT_SECS = 0.25
"""A default schedule with longer runs is not timed again. Chosen."""
_DEFAULT_SECS = 1.0
"""Time for the rounds of a default schedule whose runs are long, as far as `_LEAST_ROUNDS` take no
longer. Such a default is far slower than the winner, so its ratio need not be precise. Chosen.
"""
_LEAST_ROUNDS = 6
"""The fewest rounds that give an interval of 95%: 2 / 2**6 is below 0.05."""


def _never() -> bool:
    return False


def finish(
    task: Task,
    trials: Sequence[MeasuredTrial],
    comparer: Comparer,
    *,
    seed: int = 0,
    also: Collection[int] = (),
    is_whole: bool = False,
    max_secs: float | None = None,
    should_stop: Callable[[], bool] = _never,
    clock: Callable[[], float] = time.monotonic,
) -> Finish | None:
    """Measure the best of `trials` again until one wins, or they are tied.

    Args:
        also: The numbers of trials to measure again in any case.
        is_whole: Whether `trials` are all schedules of a space. Then up to `NUM_WHOLE_FINALISTS`
            are finalists, and the result has a margin.
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
        num = NUM_WHOLE_FINALISTS if is_whole else NUM_FINALISTS
        fit = [t for t in trials if t.number not in failed_numbers]
        if not (finalists := choose_finalists(fit, also, num)):
            break
        final = Contest(task, finalists, comparer, seed, has_margin=is_whole)
        if not _is_played(final, lambda: clock() - start_secs, enough_secs, most_secs, should_stop):
            return None
        if final.remaining:
            comparison = final.result(failed)
            if len(finalists) >= NUM_WHOLE_FINALISTS:
                comparison = replace(comparison, margin=None)  # others may be as fast
            if clock() - start_secs > most_secs:
                return comparison
            return _with_default(
                comparison, task, trials, comparer, seed=seed, should_stop=should_stop
            )
        # All of them failed, although their trials did not: the next best replace them.
        failed += final.result().finalists
    return Finish(tuple(failed)) if failed else None


def _is_played(
    final: Contest,
    spent_secs: Callable[[], float],
    enough_secs: float,
    most_secs: float,
    should_stop: Callable[[], bool],
) -> bool:
    """Measure rounds until the winner is decided or the time is spent; False if stopped."""
    for _ in final.play(lambda: spent_secs() > enough_secs):
        if should_stop():
            return False
        if spent_secs() > most_secs:
            final.analyse()
            break
    return True


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
        return None  # nothing to compare
    final = Contest(task, sorted(best[:num], key=lambda t: t.number), comparer, seed)
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
    if default.best_secs > MAX_DEFAULT_SECS:
        return comparison
    # Alone, a long run is a whole round (`workers.measure.compare`).
    affordable = int(_DEFAULT_SECS / default.best_secs)
    num_rounds = min(DEFAULT_ROUNDS, max(_LEAST_ROUNDS, affordable))
    rounds: list[Measurement] = []
    for (measured,) in comparer.compare(
        task, [default.candidate], num_rounds, mixed_seed(seed, ANALYSIS_ROUNDS[-1] - 1)
    ):
        if should_stop():
            return None
        rounds.append(measured)
        if not measured.ok:
            return comparison  # its provisional time, from the trial, must suffice
    if not rounds:
        return comparison
    default_finalist = finalist_of(default, rounds, Outcome.SLOWER)
    return replace(comparison, finalists=(default_finalist, *comparison.finalists))


def choose_finalists(
    trials: Sequence[MeasuredTrial], also: Collection[int] = (), num: int = NUM_FINALISTS
) -> list[MeasuredTrial]:
    """Return the best trials that are close to each other, by number; the default if it is close.

    Trials that are a quarter slower are not worth timing again, unless an earlier final comparison
    kept them (`also`).
    """
    correct = sorted((t for t in trials if t.measurement.ok), key=lambda t: (t.best_secs, t.number))
    close = [t for t in correct if t.best_secs < FINALIST_RATIO * correct[0].best_secs]
    chosen = close[:num] + [t for t in close[num:] if t.number == 0]
    chosen += [t for t in correct if t.number in also and t not in chosen]
    return sorted(chosen, key=lambda t: t.number)


def _secs(measurement: Measurement) -> float:
    return measurement.build_secs + measurement.check_secs + measurement.time_secs
