"""A contestant of a comparison, ready to run: a kernel or a library's function, on arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from compiler.runtime.artifact import Artifact
from compiler.runtime.module import Module
from compiler.runtime.time_calls import calls_per_sample, time_calls
from workers.libraries.library import Library
from workers.prepared import Prepared

MIN_SAMPLE_SECS = 200e-6
_WARM_UP_SECS = 20e-3  # until cores that slept, and who runs on which, are as they stay
_REPEATS = 5  # after that, instead of turns


class Timed(Protocol):
    """What is timed, after one run to warm up, which took `first_secs`."""

    first_secs: float

    def check(self) -> object:
        """Raise if the result is wrong."""
        ...

    def sample(self, *, is_cold: bool = False) -> float:
        """Return the mean seconds a call over one turn.

        Args:
            is_cold: Whether threads and cores may sleep, and must be woken first.
        """
        ...


class Run:
    """A function with all its threads.

    Args:
        check: Raises if the result is wrong.
    """

    def __init__(
        self, run: Callable[[], object], num_threads: int, check: Callable[[], object]
    ) -> None:
        self._run = run
        self._num_threads = num_threads
        self._calls = 0
        self._check = check
        self.first_secs = time_calls(run, num_threads, 1)

    def check(self) -> object:
        """Raise if the result is wrong."""
        return self._check()

    def sample(self, *, is_cold: bool = False) -> float:
        """Return the mean seconds a call in one turn; see `Timed`."""
        if is_cold:
            end = time.perf_counter() + _WARM_UP_SECS
            while time.perf_counter() < end:
                self._run()
        if not self._calls:
            self._calls = calls_per_sample(self._run, self._num_threads, MIN_SAMPLE_SECS)
        repeats = _REPEATS if is_cold else 1
        return min(time_calls(self._run, self._num_threads, self._calls) for _ in range(repeats))


def run_of_kernel(artifact: Artifact, arrays: Prepared) -> Timed:
    """Bind a candidate to arrays.

    Raises:
        ArtifactError: If it can't be loaded.
    """
    module = Module(artifact)
    return Run(module.bind(*arrays.fresh_arrays()), module.num_threads, arrays.check)


class LibraryRun:
    """A library's function with some numbers of threads; a sample is that of the fastest.

    Threads that wait for each other lose whole time slices where something else runs on a core: a
    product of 0.4 ms took OpenBLAS 22 ms then, which says nothing of OpenBLAS.

    Args:
        runs: By numbers of threads; the last is what `first_secs` and the check are of.
    """

    def __init__(self, library: Library, runs: Mapping[int, Timed]) -> None:
        self._library = library
        self._runs = runs
        *_, last = runs.values()
        self.first_secs = last.first_secs
        self.check = last.check

    def sample(self, *, is_cold: bool = False) -> float:
        """Return the mean seconds a call over one turn; see `Timed`."""
        secs = []
        for num_threads, run in self._runs.items():
            self._library.start(num_threads)
            secs.append(run.sample(is_cold=is_cold))
        return min(secs)


def run_of_library(
    library: Library, operator: str, thread_counts: Sequence[int], arrays: Prepared
) -> Timed:
    """Bind a library's function to the inputs among arrays; what it returns is the result.

    Args:
        thread_counts: With how many threads to try it; the last is that of the kernel beside it.

    Raises:
        LibraryError: If it has no such function.
    """
    *inputs, _ = arrays.fresh_arrays()
    call = library.prepare(operator, inputs)

    def check() -> None:
        arrays.check_result(call.result(call.run()))

    # All on one clock: that of the walls where the kernel has several threads.
    runs = {num: Run(call.run, thread_counts[-1], check) for num in thread_counts}
    return LibraryRun(library, runs)
