"""Run candidates in a disposable child, and return a measurement or an error for each.

A candidate can cost no more than its own trial: a child that crashed or overran a deadline is
killed with its whole group, and the next candidate gets a new one. `workers.child.diagnosis`
says which error a death means.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from signal import SIGKILL
from types import TracebackType
from typing import Any, Self

from compiler.bounded_cache import BoundedCache
from compiler.runtime.measurement import ErrorKind, Measurement
from workers.child.diagnosis import OomCounter, explain_death, explain_kill
from workers.child.host import Host
from workers.child.phase_clock import PhaseClock
from workers.child.process import ChildGoneError, ChildProcess, DeadlineError, Death
from workers.child.race import Race
from workers.measure.compare import CompareRequest
from workers.measure.comparison import Comparison
from workers.wire.frames import FrameError
from workers.wire.phase import Phase
from workers.wire.request import MeasureLimits, MeasureRequest

_START_TIMEOUT_SECS = 60.0
"""Time limit for the start of a child, which imports NumPy and LLVM; a busy host takes longer.
Chosen.
"""
_GRACE_SECS = 1.0
"""A child that closed its pipe has so long to write its last words. Chosen."""
_MAX_ORACLE_TIMEOUTS = 16
"""Workloads that are remembered because their oracle takes too long. Chosen."""
_NUM_SLOTS = 4
"""Workloads whose expected result outlives a child: a group interleaves several. Each takes up to
`workers.measure.shared_arrays.MAX_BYTES`. Chosen, not measured.
"""
# All errors that a child may cause: candidates are hostile input, and so are its messages.
_FAULTS = (
    *(DeadlineError, ChildGoneError, FrameError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)


class ChildStartError(RuntimeError):
    """No child can be started: this host can't measure."""


class RunnerClosedError(RuntimeError):
    """The runner was closed."""


class ChildRunner:
    """Measures candidates one at a time, each in a child that it can kill.

    The child starts with the first candidate and is kept for the next. Requests of several
    threads take turns by candidate. `close` ends the child and the measurement in progress.

    Args:
        limits: The limits of a candidate whose request has none.
        worker: The name under which measurements are reported.
        child_module: The program of the child; tests run one whose kernels have faults.
    """

    def __init__(
        self,
        limits: MeasureLimits | None = None,
        *,
        worker: str | None = None,
        child_module: str = "workers.child.child",
    ) -> None:
        self.limits = limits or MeasureLimits()
        self.worker = worker or f"{socket.gethostname()}/{os.getpid()}"
        self._child_module = child_module
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self._child: ChildProcess | None = None
        self._racing: list[ChildProcess] = []
        self._host: Host | None = None
        self._is_closed = False
        self._peak_bytes = 0  # of the child, before the current candidate
        self._oom_counter = OomCounter()
        self._oracle_timeouts: BoundedCache[tuple[str, MeasureLimits], Measurement]
        self._oracle_timeouts = BoundedCache(_MAX_ORACLE_TIMEOUTS)
        self._slots = [os.memfd_create("loopwright-shelf") for _ in range(_NUM_SLOTS)]

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, in order.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        request = replace(request, limits=request.limits or self.limits)
        for index in range(len(request.traces)):
            with self._turn:
                measurement = self._measure_one(request.part([index]))
            yield index, replace(measurement, worker=self.worker)

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds in which all are timed side by side: one measurement a contestant.

        A contestant that fails is an error in that round and in each later one.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        for rounds in self.compare_in_batches(request):
            yield from rounds

    def compare_in_batches(self, request: CompareRequest) -> Iterator[list[list[Measurement]]]:
        """Compare in the same way, and yield the rounds in batches, which may be empty.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        request = replace(request, limits=request.limits or self.limits)
        if request.libraries:
            yield [self._stamped(measured, request.target) for measured in self._race(request)]
            return
        comparison = Comparison(request)
        is_last = False
        while not comparison.is_done:
            rounds: list[list[Measurement]] = []
            with self._turn:
                is_last = not self._add_rounds(request, comparison, rounds, is_last=is_last)
            yield [self._stamped(measured, request.target) for measured in rounds]
        yield [self._stamped(measured, request.target) for measured in comparison.skipped_rounds()]

    def host(self) -> Host:
        """Return the facts of this host, as the child reports them; start a child if needed.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        with self._turn:
            if self._host is None:
                self._living_child()
            assert self._host is not None
            return self._host

    @property
    def child_pid(self) -> int | None:
        """Return the process id of the child; None without a child."""
        with self._state:
            return None if self._child is None else self._child.pid

    def release(self) -> None:
        """End the child to free its memory; the next candidate starts another."""
        with self._turn:
            self._end_child()

    def close(self) -> None:
        """End the child and abandon the current measurement; a second call does nothing."""
        with self._state:
            self._is_closed = True
            for child in (self._child, *self._racing):
                if child is not None:
                    child.kill()
        with self._turn:
            self._end_child()
            while self._slots:
                os.close(self._slots.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _measure_one(self, request: MeasureRequest) -> Measurement:
        assert request.limits is not None, "`measure` filled them in"
        # Otherwise every candidate of the workload would wait for its oracle in vain.
        timeout = self._oracle_timeouts.get((request.workload, request.limits))
        if timeout is not None:
            return timeout
        # A child that another process killed is not the candidate's fault: try again once.
        measurement = self._attempt(request, is_last=False) or self._attempt(request, is_last=True)
        assert measurement is not None
        assert self._host is not None
        return replace(measurement, toolchain=self._host.toolchain_for(request.target))

    def _give_up_workload(self, request: MeasureRequest, failure: Measurement) -> None:
        assert request.limits is not None, "`measure` filled them in"
        assert self._host is not None
        timeout = replace(failure, toolchain=self._host.toolchain_for(request.target))
        self._oracle_timeouts.put((request.workload, request.limits), timeout)

    def _attempt(self, request: MeasureRequest, *, is_last: bool) -> Measurement | None:
        """Have a child measure the candidate.

        Returns:
            The measurement; None if another process killed the child, and an attempt is left.
        """
        child = self._living_child()
        attempt = PhaseClock(request)
        try:
            child.send(request.to_json(), attempt.deadline)
            while True:
                message = child.receive(attempt.deadline)
                if "phase" in message:
                    attempt.enter(Phase(message["phase"]))
                else:
                    self._peak_bytes = int(message["peak_bytes"])
                    measurement = Measurement.from_json(message["measurement"])
                    self._replace_if_spent(message)
                    return measurement
        except _FAULTS as error:
            failure = self._failure(attempt, error, is_last=is_last)
            if failure and attempt.is_of_the_oracle and isinstance(error, DeadlineError):
                self._give_up_workload(request, failure)
            return failure
        except BaseException:
            # Interrupted: the next answer of this child would be taken for another candidate's.
            self._end_child()
            raise

    def _add_rounds(
        self,
        request: CompareRequest,
        comparison: Comparison,
        rounds: list[list[Measurement]],
        *,
        is_last: bool,
    ) -> bool:
        """Add the rounds of one batch of a child, or those that it measured before it died.

        Returns:
            False if another process killed the child, and an attempt is left.
        """
        child = self._living_child()
        attempt = PhaseClock(request)
        try:
            child.send(comparison.remainder().to_json(), attempt.deadline)
            while "done" not in (message := child.receive(attempt.deadline)):
                if "phase" in message:
                    attempt.enter(Phase(message["phase"]))
                    comparison.enter(message["contestant"])
                elif "fault" in message:
                    comparison.take_fault(message)
                else:
                    rounds.append(comparison.take_round(message))
            self._peak_bytes = int(message["peak_bytes"])
            self._replace_if_spent(message)
        except _FAULTS as error:
            failure = self._failure(attempt, error, is_last=is_last)
            if failure is None:
                return False
            comparison.blame(failure, is_of_all=attempt.is_of_the_oracle)
        except BaseException:
            self._end_child()
            raise
        return True

    def _race(self, request: CompareRequest) -> list[list[Measurement]]:
        """Time a candidate beside libraries, in separate children; first end this runner's."""
        with self._turn:
            if self._host is None:
                self._living_child()
            self._end_child()
            try:
                rounds = Race(request, self._open_for_race).rounds()
            finally:
                with self._state:
                    racing, self._racing = self._racing, []
                for child in racing:
                    child.end()
        self._raise_if_closed()
        return rounds

    def _open_for_race(self, settings: Mapping[str, str]) -> ChildProcess:
        with self._state:
            if self._is_closed:
                raise RunnerClosedError("the runner is closed")
            child = ChildProcess(self._child_module, self._slots, settings)
            self._racing.append(child)
            return child

    def _stamped(self, measured: list[Measurement], target: str) -> list[Measurement]:
        assert self._host is not None
        made_by = self._host.toolchain_for(target)
        return [replace(m, worker=self.worker, toolchain=m.toolchain or made_by) for m in measured]

    def _failure(
        self, attempt: PhaseClock, error: Exception, *, is_last: bool
    ) -> Measurement | None:
        """End the child, and return the error of its candidate.

        Returns:
            The measurement; None if another process killed the child, and an attempt is left.
        """
        match error:
            case DeadlineError():
                self._end_child()
                self._raise_if_closed()
                reason = f"took longer than {attempt.allowed_secs:g} s"
                return attempt.failed(ErrorKind.TIMEOUT, reason)
            case ChildGoneError():
                death = self._end_child(_GRACE_SECS)
                self._raise_if_closed()
                if death.exit_code == -SIGKILL and not death.was_alive:
                    ran_out = self._oom_counter.has_grown()
                    return explain_kill(attempt, death, ran_out=ran_out, is_last=is_last)
                return explain_death(attempt, death, self._used_bytes(death))
            case _:
                self._end_child()
                return attempt.failed(ErrorKind.CRASH, f"broke the pipe to its runner: {error}")

    def _used_bytes(self, death: Death) -> int:
        """Return the most memory that the last candidate had; 0 if it is unknown."""
        assert self._host is not None
        # A peak that did not rise belongs to an earlier candidate, or to this process at the fork.
        has_risen = death.peak_bytes > self._peak_bytes
        return death.peak_bytes - self._host.resident_bytes if has_risen else 0

    def _living_child(self) -> ChildProcess:
        """Return the child; start a new one if there is none, or if it died while idle."""
        if self._child is not None and not self._child.is_alive():
            self._end_child()
        if self._child is not None:
            return self._child
        with self._state:
            if self._is_closed:
                raise RunnerClosedError("the runner is closed")
            child = self._child = ChildProcess(self._child_module, self._slots)
        try:
            greeting = child.receive(time.monotonic() + _START_TIMEOUT_SECS)
            self._host = Host.from_json(greeting["host"])
            self._peak_bytes = int(greeting["peak_bytes"])
        except _FAULTS as error:
            death = self._end_child(_GRACE_SECS)
            self._raise_if_closed()
            cause = "no answer" if isinstance(error, DeadlineError) else death.cause
            raise ChildStartError(
                f"the child {self._child_module} can't start: {cause}: {death.last_words}"
            ) from error
        self._oom_counter.has_grown()  # kills before this child are not its candidates'
        return child

    def _replace_if_spent(self, message: Mapping[str, Any]) -> None:
        """End a child near its limit of CPU time; see `workers.child.sandbox`."""
        if message.get("is_spent") is True:
            self._end_child()

    def _end_child(self, grace_secs: float = 0.0) -> Death:
        with self._state:
            child, self._child = self._child, None
        return Death() if child is None else child.end(grace_secs)

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise RunnerClosedError("the runner was closed while it measured")
