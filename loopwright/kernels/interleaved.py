"""Compare run times on a busy machine: interleave the runs, and compare medians."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compiler.runtime.time_calls import calls_per_sample, time_calls
from compiler.runtime.timing import Timing


def time_interleaved(
    runs: Mapping[str, Callable[[], object]],
    *,
    samples: int = 9,
    min_sample_secs: float = 2e-3,
    num_threads: int = 1,
) -> dict[str, Timing]:
    """Time several functions in turns, so that disturbances of the machine affect all of them.

    Args:
        runs: The functions to time, by name; each is called once to warm up.
        samples: The number of turns of each.
        min_sample_secs: The minimum time of a turn.
        num_threads: The number of threads of the functions.
    """
    calls = {}
    for name, run in runs.items():
        run()
        calls[name] = calls_per_sample(run, num_threads, min_sample_secs, time_calls)
    secs: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(samples):
        for name, run in runs.items():
            secs[name].append(time_calls(run, num_threads, calls[name]))
    return {name: Timing(tuple(values)) for name, values in secs.items()}
