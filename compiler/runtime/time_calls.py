"""The clock of kernels that run on the host: how long a call takes."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import TypeAlias

# A chosen bound: far above the resolution of the clock, and shorter than a time slice.
MIN_SAMPLE_SECS = 50e-6
# A chosen bound: it ends the search for a count if a kernel takes no measurable time.
_MAX_CALLS = 1 << 20

Clock: TypeAlias = Callable[[Callable[[], object], int, int], float]
"""Returns the mean seconds a call of a function, given its number of threads and of calls."""


def calls_per_sample(
    run: Callable[[], object], num_threads: int, min_sample_secs: float, clock: Clock
) -> int:
    """Return the number of calls that take at least `min_sample_secs`."""
    calls = 1
    while calls < _MAX_CALLS:
        elapsed = clock(run, num_threads, calls) * calls
        if elapsed >= min_sample_secs:
            break
        # Aim a little beyond, but distrust a clock that is too coarse to see one call.
        calls *= min(10, max(2, int(1.2 * min_sample_secs / max(elapsed, 1e-9))))
    return min(calls, _MAX_CALLS)


def time_calls(run: Callable[[], object], num_threads: int, calls: int) -> float:
    """Return the mean seconds a call, over `calls` calls.

    The clock is wall time. If `run` uses one thread and that thread was preempted, it is the
    thread's CPU time instead, which excludes other processes. CPU time is the second choice, since
    under a hypervisor it is sometimes too short, and the shortest sample is the one that counts.
    """
    switches = _preemptions()
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(calls):
        run()
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    was_preempted = num_threads == 1 and _preemptions() != switches
    return (cpu if was_preempted else wall) / calls


def _preemptions() -> int:
    """Return how often this thread was preempted."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
