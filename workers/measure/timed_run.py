"""A contestant of a comparison, ready to run: a kernel or a library's function, on arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compiler.backends.backend import backend_of
from compiler.backends.module import Module
from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.runtime.time_calls import Clock, calls_per_sample
from compiler.target.target import Target
from workers.libraries.library import Library

MIN_SAMPLE_SECS = 200e-6
"""Shortest duration of a sample: the resolution of the clock, and an interrupt of a microsecond,
are below 1% of it. Chosen.
"""
_LONG = 100
"""From so many times `MIN_SAMPLE_SECS` on, the first run decides that one call is a sample. Chosen.
"""
_WARM_UP_SECS = 20e-3
"""Time of runs before the first sample: sleeping cores reach their frequency, and the scheduler
places the threads. Chosen.
"""
_REPEATS = ((20e-3, 1), (1e-3, 3), (0.0, 5))
"""Samples after the warm-up, by the seconds of the first run: long runs vary less. Chosen."""


class TimedRun:
    """A function with all its threads.

    Args:
        check: Raises if the result is wrong.
        clock: Times calls of the function.
    """

    def __init__(
        self,
        run: Callable[[], object],
        num_threads: int,
        check: Callable[[], object],
        clock: Clock,
    ) -> None:
        self._run = run
        self._num_threads = num_threads
        self._check = check
        self._clock = clock
        self.first_secs = clock(run, num_threads, 1)
        # One call of a long function is a sample, though the first one was cold.
        self._calls = 1 if self.first_secs > _LONG * MIN_SAMPLE_SECS else 0

    def check(self) -> object:
        """Raise if the result is wrong."""
        return self._check()

    def sample(self) -> float:
        """Return the mean seconds a call in one turn."""
        if not self._calls:
            self._calls = calls_per_sample(
                self._run, self._num_threads, MIN_SAMPLE_SECS, self._clock
            )
        return self._clock(self._run, self._num_threads, self._calls)

    def sample_after_rest(self) -> float:
        """Return the shortest of a few turns, after a while to wake threads and cores."""
        end = time.perf_counter() + _WARM_UP_SECS
        while time.perf_counter() < end:
            # The clock waits for the end of a call, which on a GPU has only been queued.
            self._clock(self._run, self._num_threads, 1)
        repeats = next(num for secs, num in _REPEATS if self.first_secs >= secs)
        return min(self.sample() for _ in range(repeats))


def load_kernel(artifact: Artifact, arrays: TrialArrays) -> tuple[Module, list[Any]]:
    """Load a candidate with the constants of its workload; return it with the arrays of a call.

    Constants are packed here, and so outside of what is timed.

    Raises:
        ArtifactError: If it can't be loaded.
    """
    names = (param.name for param in arrays.func.params)
    by_name = dict(zip(names, arrays.fresh_arrays(), strict=True))
    module = Module(artifact, {param.name: by_name[param.name] for param in artifact.constants})
    return module, [by_name[param.name] for param in artifact.arguments]


def run_of_kernel(artifact: Artifact, arrays: TrialArrays, clock: Clock | None = None) -> TimedRun:
    """Bind a candidate to arrays.

    Args:
        artifact: The candidate.
        arrays: The arrays.
        clock: Times its calls; None for the clock of its backend.

    Raises:
        ArtifactError: If it can't be loaded.
    """
    module, arguments = load_kernel(artifact, arrays)
    run = module.bind(*arguments)
    return TimedRun(run, module.num_threads, arrays.check, clock or module.clock)


def run_of_library(
    library: Library, operator: str, target: Target, arrays: TrialArrays
) -> TimedRun:
    """Bind a library's function to the inputs among arrays; its return value is the result.

    Args:
        target: The target of the kernel beside it: both are timed by one kind of clock, with wall
            time if the kernel has several threads, and with cold caches if the kernel has them.

    Raises:
        LibraryError: If it has no such function.
    """
    *inputs, _ = arrays.fresh_arrays()
    call = library.prepare(operator, inputs)

    def check() -> None:
        arrays.check_result(call.result(call.run()))

    operands = [*inputs, *call.copies]
    clock = backend_of(target).clock_of_library(call.clock, operands, target)
    return TimedRun(call.run, target.num_cores, check, clock)
