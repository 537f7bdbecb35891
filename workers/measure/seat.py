"""A contestant alone in its process: a candidate or a library that is timed in its turns.

Between its turns the whole process is stopped (see `workers.child.race`), so that none of its
threads disturbs another contestant.
"""

from __future__ import annotations

from compiler.backends.backend import backend_of
from compiler.backends.trial_arrays import TrialArrays
from compiler.target.target import Target
from workers.libraries.library import Library
from workers.libraries.load import Load
from workers.measure.compare import Announce, Build
from workers.measure.timed_run import TimedRun, run_of_kernel, run_of_library
from workers.wire.phase import Phase
from workers.wire.request import SeatRequest


class CandidateSeat:
    """A candidate of the search."""

    def __init__(
        self, request: SeatRequest, prepared: TrialArrays, announce: Announce, build: Build
    ) -> None:
        self._announce = announce
        self._arrays = prepared
        announce(Phase.BUILD, None)
        self._target = Target(request.target)
        self._clock = backend_of(self._target).time_beside_library
        self._artifact = build(prepared.func, request.trace, self._target)
        self._round = -1
        self._run: TimedRun | None = None

    def facts(self) -> dict[str, object]:
        """Return facts for the comparison: the peak rate of the cores."""
        self._announce(Phase.TIME, None)
        peak = backend_of(self._target).peak_flops(self._target, self._target.num_cores)
        return {} if peak is None else {"peak_flops": peak}

    def turn(self, number: int, num_threads: int) -> float:
        """Return the seconds a call in a round; a new round has other arrays."""
        del num_threads  # it has those of its target
        if number != self._round or self._run is None:
            self._announce(Phase.CHECK, None)
            self._arrays = self._arrays.again()
            run = run_of_kernel(self._artifact, self._arrays, self._clock)
            if self._run is None:
                run.check()
            self._round, self._run = number, run
        self._announce(Phase.TIME, None)
        return self._run.sample_after_rest()


class LibrarySeat:
    """A library that computes the same."""

    def __init__(
        self, request: SeatRequest, prepared: TrialArrays, announce: Announce, load: Load
    ) -> None:
        self._announce = announce
        self._arrays = prepared
        self._operator = request.operator
        announce(Phase.BUILD, None)
        self._target = Target(request.target)
        self._library: Library = load(request.library)
        # Its threads are started once they are asked for.
        self._version = self._library.start(1)
        self._round = -1
        self._run: TimedRun | None = None

    def facts(self) -> dict[str, object]:
        """Return facts for the comparison: its version, and the code that it uses."""
        kernels = self._library.kernel_set()
        return {
            "version": self._version,
            "kernel_set": kernels.name,
            "is_chosen_by": kernels.is_chosen_by,
        }

    def turn(self, number: int, num_threads: int) -> float:
        """Return the seconds a call in a round; a new round has other arrays."""
        self._library.start(num_threads)
        if number != self._round or self._run is None:
            self._announce(Phase.CHECK, None)
            self._arrays = self._arrays.again()
            run = run_of_library(self._library, self._operator, self._target, self._arrays)
            if self._run is None:
                run.check()
            self._round, self._run = number, run
        self._announce(Phase.TIME, None)
        return self._run.sample_after_rest()
