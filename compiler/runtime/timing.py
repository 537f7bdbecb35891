"""How long a kernel takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compiler.runtime.module import Module

MIN_SAMPLE_SECS = 50e-6
_MAX_CALLS = 1 << 20


@dataclass(frozen=True, slots=True)
class Timing:
    """The samples of one timing, in seconds a run."""

    secs: tuple[float, ...]

    @property
    def median_secs(self) -> float:
        """The median sample."""
        return statistics.median(self.secs)

    @property
    def min_secs(self) -> float:
        """The shortest sample."""
        return min(self.secs)


def time_evaluator(
    module: Module, *arrays: Any, samples: int = 10, min_sample_secs: float = MIN_SAMPLE_SECS
) -> Timing:
    """Time a module on arrays, after one run to warm up.

    A sample is the mean over as many calls as last `min_sample_secs`. The clock is the thread's
    CPU time where the kernel uses one thread, so that a neighbour's work does not count, and wall
    time otherwise.

    Raises:
        ArgumentError: If the arrays do not fit the module.
        ValueError: If `samples` is less than 1.
    """
    if samples < 1:
        raise ValueError(f"samples is {samples}: expected 1 or more")
    run = module.bind(*arrays)
    clock = time.thread_time if module.num_threads == 1 else time.perf_counter
    run()
    calls = calls_per_sample(run, clock, min_sample_secs)
    return Timing(tuple(time_calls(run, clock, calls) for _ in range(samples)))


def calls_per_sample(
    run: Callable[[], object], clock: Callable[[], float], min_sample_secs: float
) -> int:
    """Return how many calls last at least `min_sample_secs`."""
    calls = 1
    while calls < _MAX_CALLS:
        elapsed = time_calls(run, clock, calls) * calls
        if elapsed >= min_sample_secs:
            break
        # Aim a little beyond, but distrust a clock that is too coarse to see one call.
        calls *= min(10, max(2, int(1.2 * min_sample_secs / max(elapsed, 1e-9))))
    return min(calls, _MAX_CALLS)


def time_calls(run: Callable[[], object], clock: Callable[[], float], calls: int) -> float:
    """Return the mean seconds a call, over `calls` calls."""
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls
