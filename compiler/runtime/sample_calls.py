"""The number of samples of a candidate: few if it is slow, enough if it may win."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from compiler.runtime.conditions import TimingConditions
from compiler.runtime.time_calls import MIN_SAMPLE_SECS, Clock, calls_per_sample

NUM_SAMPLES = 5
"""Samples of a kernel of one thread, whose minimum counts: more cost time and seldom find a shorter
one. Chosen.
"""
NUM_LONG_SAMPLES = 3
"""Samples of a kernel that takes a millisecond: each has less noise, and costs more."""
LOSER_RATIO = 1.6
"""A candidate this many times slower than the incumbent gets one sample. Chosen: noise seldom
reaches it.
"""
CONTENDER_RATIO = 1.15
"""One that is slower by this ratio after two samples gets no more: they would not make it a winner.
Chosen.
"""
LONG_CONTENDER_RATIO = 1.05
"""The same for a kernel that takes a millisecond: two samples of it rarely err as much."""

_BUDGET_SECS = 0.25
"""Time limit of a candidate's samples: more is better spent on other candidates, and the default
schedule alone may take 200 ms. Chosen.
"""
_LONG_SECS = 1e-3
"""One run of this duration is a sample: the cost of a cold start is lost in it. Chosen."""
_FRAGILE_SECS = 20e-3
"""Up to this duration, one interruption by the host may make a winner look like a loser. Chosen."""
_CHANCES = 3
"""Samples before a kernel of several threads may be given up: a thread that loses its core delays
them all. Chosen.
"""


@dataclass(frozen=True, slots=True)
class TimedSamples:
    """The samples of a candidate, in seconds a run, and the conditions of a device; else None."""

    secs: tuple[float, ...]
    conditions: TimingConditions | None = None


def sample_secs(
    run: Callable[[], None],
    num_threads: int,
    first_secs: float,
    incumbent_secs: float | None,
    clock: Clock,
) -> tuple[float, ...]:
    """Return samples, each the mean seconds a run over at least 50 microseconds.

    A loser gets one sample: it must not cost more, yet the cost model learns from it. So does a
    kernel of more than an eighth of a second. A doubtful candidate gets two. One slow run of a
    short kernel does not prove a loser: it may have been cold, or interrupted. Long kernels get
    three samples, others five. Kernels of several threads get ten, and two before they lose: they
    are interrupted more often, which no clock shows.

    Args:
        first_secs: The first run, which warmed up.
        incumbent_secs: The best known time.
        clock: Times runs.
    """

    def is_loser(secs: float, ratio: float = LOSER_RATIO) -> bool:
        return secs > ratio * (incumbent_secs or math.inf)

    is_long = first_secs >= _LONG_SECS
    if (first_secs > _FRAGILE_SECS and is_loser(first_secs)) or first_secs > _BUDGET_SECS / 2:
        return (first_secs,)
    calls = 1 if is_long else calls_per_sample(run, num_threads, MIN_SAMPLE_SECS, clock)
    samples = [clock(run, num_threads, calls)]
    room = int((_BUDGET_SECS - first_secs) / max(samples[0] * calls, 1e-9))
    # Any of several threads may lose its core, which no clock shows.
    num_wanted = NUM_LONG_SAMPLES if is_long else NUM_SAMPLES
    is_calm = is_long and num_threads == 1
    contender_ratio = LONG_CONTENDER_RATIO if is_calm else CONTENDER_RATIO
    chances, max_samples = (1, num_wanted) if num_threads == 1 else (_CHANCES, 2 * NUM_SAMPLES)
    while len(samples) < min(max_samples, room):
        ratio = LOSER_RATIO if len(samples) == chances else contender_ratio
        if len(samples) >= chances and is_loser(min(samples), ratio):
            break
        samples.append(clock(run, num_threads, calls))
    return tuple(samples)
