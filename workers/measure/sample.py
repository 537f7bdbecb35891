"""How often a candidate is timed: seldom when it is slow, enough when it may win."""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.runtime.time_calls import MIN_SAMPLE_SECS, Clock, calls_per_sample

NUM_SAMPLES = 5
NUM_LONG_SAMPLES = 3
"""Of a kernel that takes a millisecond: each sample of it is calmer, and costs more."""
LOSER_RATIO = 1.6
"""A candidate this many times slower than the incumbent is timed briefly."""
CONTENDER_RATIO = 1.15
"""One that is slower by this after two samples is given up: more would not make it a winner."""
LONG_CONTENDER_RATIO = 1.05
"""The same of a kernel that takes a millisecond: two samples of it are seldom both that far off."""

# What goes beyond is better spent on other candidates: the default schedule alone may take 200 ms.
_BUDGET_SECS = 0.25
# From here on one run is a sample, and what a cold start adds is lost in it.
_LONG_SECS = 1e-3
# Up to here one interruption by the host may make a winner look like a loser.
_FRAGILE_SECS = 20e-3
_CHANCES = 3


def sample_secs(
    run: Callable[[], None],
    num_threads: int,
    first_secs: float,
    incumbent_secs: float | None,
    clock: Clock,
) -> tuple[float, ...]:
    """Return samples, each the mean seconds a run over at least 50 microseconds.

    A loser gets one sample: it must not cost more, yet the cost model learns from it. So does a
    kernel of more than an eighth of a second. What may not win gets two. One run of a short kernel
    makes no loser: it may have been cold, or interrupted. Long kernels get three samples, others
    five. Kernels of several threads get ten, and two more to lose by: they are interrupted more
    often, and it does not show.

    Args:
        first_secs: The first run, which warmed up.
        incumbent_secs: The best time known.
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
    # Any of several threads may lose its core, and no clock tells.
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
