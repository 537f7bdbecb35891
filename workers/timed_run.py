"""A contestant of a comparison, ready to run: a kernel or a library's function, on arrays."""

from __future__ import annotations

from collections.abc import Callable

from compiler.runtime.artifact import Artifact
from compiler.runtime.module import Module
from compiler.runtime.timing import calls_per_sample, time_calls
from workers.libraries.library import Library
from workers.prepared import Prepared

MIN_SAMPLE_SECS = 200e-6


class Run:
    """What is timed, after one run to warm up, which took `first_secs`.

    Args:
        check: Raises if the result is wrong.
    """

    def __init__(
        self, run: Callable[[], object], num_threads: int, check: Callable[[], object]
    ) -> None:
        self._run = run
        self._num_threads = num_threads
        self._calls = 0
        self.check = check
        self.first_secs = time_calls(run, num_threads, 1)

    def sample(self, *, is_cold: bool = False) -> float:
        """Return the mean seconds a call over one turn.

        Args:
            is_cold: Whether its threads may sleep, so that a call has to wake them first.
        """
        if is_cold:
            self._run()
        if not self._calls:
            self._calls = calls_per_sample(self._run, self._num_threads, MIN_SAMPLE_SECS)
        return time_calls(self._run, self._num_threads, self._calls)


def run_of_kernel(artifact: Artifact, arrays: Prepared) -> Run:
    """Bind a candidate to arrays.

    Raises:
        ArtifactError: If it can't be loaded.
    """
    module = Module(artifact)
    return Run(module.bind(*arrays.fresh_arrays()), module.num_threads, arrays.check)


def run_of_library(library: Library, operator: str, num_threads: int, arrays: Prepared) -> Run:
    """Bind a library's function to the inputs among arrays; what it returns is the result.

    Raises:
        LibraryError: If it has no such function.
    """
    *inputs, _ = arrays.fresh_arrays()
    call = library.prepare(operator, inputs)
    return Run(call.run, num_threads, lambda: arrays.check_result(call.result(call.run())))
