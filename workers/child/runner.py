"""Runs candidates in a disposable child, and says of each what came of it.

Whatever a candidate does, it costs its own trial at most: a child that crashed or overran a
deadline is killed with its whole group, the next candidate gets a new one.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGABRT, SIGKILL
from types import TracebackType
from typing import Any, Self

from compiler.runtime.measurement import ErrorKind, Measurement
from workers.child.phase_clock import PhaseClock
from workers.child.process import ChildGoneError, ChildProcess, DeadlineError, Death
from workers.child.race import Race
from workers.measure.compare import CompareRequest
from workers.measure.comparison import Comparison
from workers.wire.frames import FrameError
from workers.wire.phase import Phase
from workers.wire.request import MeasureLimits, MeasureRequest

_START_TIMEOUT_SECS = 60.0
_GRACE_SECS = 1.0
_NEAR = 0.8  # of the memory limit: address space runs out before all of it is in use
_NUM_HOPELESS = 16  # workloads remembered for an oracle that takes too long
_NUM_SLOTS = 4  # workloads whose expected result outlives a child
# Native code says so before it aborts, in words that depend on the library.
_OUT_OF_MEMORY_WORDS = ("out of memory", "bad_alloc", "cannot allocate memory", "MemoryError")
# What may go wrong when a child is talked to.
_FAULTS = (
    *(DeadlineError, ChildGoneError, FrameError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)


class ChildStartError(RuntimeError):
    """No child can be started here: measuring itself is broken."""


class RunnerClosedError(RuntimeError):
    """The runner was closed."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a child says of where it runs, and of the memory it takes before any candidate."""

    label: str
    toolchain: str
    resident_bytes: int
    lacks: tuple[str, ...] = ()  # measures of `workers.child.sandbox` that its kernel did not allow

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Host:
        """Read the greeting of a child.

        Raises:
            KeyError, TypeError, ValueError: If it is none.
        """
        return cls(
            str(obj["label"]),
            str(obj["toolchain"]),
            int(obj["resident_bytes"]),
            tuple(map(str, obj["lacks"])),
        )


class ChildRunner:
    """Measures candidates one at a time, each in a child that it can kill.

    The child starts with the first candidate and is kept for the next. Requests of several
    threads take turns by candidate. `close` ends the child, and with it whatever is under way.

    Args:
        limits: What a candidate may take where its request does not say.
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
        self._peak_bytes = 0  # of the child, before the candidate in hand
        self._ooms_seen = 0
        self._hopeless: dict[tuple[str, MeasureLimits], Measurement] = {}
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

        One that went wrong is an error in each round from then on.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        for rounds in self.compare_in_batches(request):
            yield from rounds

    def compare_in_batches(self, request: CompareRequest) -> Iterator[list[list[Measurement]]]:
        """Do the same; yield together what a child measured in a moment, which may be nothing.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        request = replace(request, limits=request.limits or self.limits)
        if request.libraries:
            yield [self._stamped(measured) for measured in self._race(request)]
            return
        comparison = Comparison(request)
        is_last = False
        while not comparison.is_done:
            rounds: list[list[Measurement]] = []
            with self._turn:
                is_last = not self._add_rounds(request, comparison, rounds, is_last=is_last)
            yield [self._stamped(measured) for measured in rounds]
        yield [self._stamped(measured) for measured in comparison.given_up()]

    def host(self) -> Host:
        """Return what the child says of this host; a child is started if there is none.

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
        """The child's process, if there is one."""
        with self._state:
            return None if self._child is None else self._child.pid

    def rest(self) -> None:
        """End the child, which frees its memory; the next candidate starts another."""
        with self._turn:
            self._bury()

    def close(self) -> None:
        """End the child; a second call does nothing. What is being measured is abandoned."""
        with self._state:
            self._is_closed = True
            for child in (self._child, *self._racing):
                if child is not None:
                    child.kill()
        with self._turn:
            self._bury()
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
        # Else each candidate would wait for the oracle as long, and in vain.
        known = self._hopeless.get((request.workload, request.limits))
        if known is not None:
            return known
        # A child killed by a hand neither ours nor the system's is not the candidate's fault.
        measurement = self._attempt(request, is_last=False) or self._attempt(request, is_last=True)
        assert measurement is not None
        assert self._host is not None
        return replace(measurement, toolchain=self._host.toolchain)

    def _give_up_workload(self, request: MeasureRequest, failure: Measurement) -> None:
        assert request.limits is not None, "`measure` filled them in"
        assert self._host is not None
        while len(self._hopeless) >= _NUM_HOPELESS:
            del self._hopeless[next(iter(self._hopeless))]
        found = replace(failure, toolchain=self._host.toolchain)
        self._hopeless[request.workload, request.limits] = found

    def _attempt(self, request: MeasureRequest, *, is_last: bool) -> Measurement | None:
        """Have a child measure the candidate.

        Returns:
            The measurement; None if somebody else killed the child, and this is not the last try.
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
                    found = Measurement.from_json(message["measurement"])
                    self._replace_if_spent(message)
                    return found
        except _FAULTS as error:
            failure = self._failure(attempt, error, is_last=is_last)
            if failure and attempt.is_of_the_oracle and isinstance(error, DeadlineError):
                self._give_up_workload(request, failure)
            return failure
        except BaseException:
            # Interrupted: what this child answers next would be taken for another candidate's.
            self._bury()
            raise

    def _add_rounds(
        self,
        request: CompareRequest,
        comparison: Comparison,
        rounds: list[list[Measurement]],
        *,
        is_last: bool,
    ) -> bool:
        """Add the rounds that a child measures in a moment, or until it dies.

        Returns:
            False if somebody else killed the child, and this is not the last try.
        """
        child = self._living_child()
        attempt = PhaseClock(request)
        try:
            child.send(comparison.rest().to_json(), attempt.deadline)
            while "done" not in (message := child.receive(attempt.deadline)):
                if "phase" in message:
                    attempt.enter(Phase(message["phase"]))
                    comparison.enter(message["place"])
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
            self._bury()
            raise
        return True

    def _race(self, request: CompareRequest) -> list[list[Measurement]]:
        """Time a candidate beside libraries; the child of this runner makes room for theirs."""
        with self._turn:
            if self._host is None:
                self._living_child()
            self._bury()
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

    def _stamped(self, measured: list[Measurement]) -> list[Measurement]:
        assert self._host is not None
        made_by = self._host.toolchain
        return [replace(m, worker=self.worker, toolchain=m.toolchain or made_by) for m in measured]

    def _failure(
        self, attempt: PhaseClock, error: Exception, *, is_last: bool
    ) -> Measurement | None:
        """End the child, and say what its candidate did.

        Returns:
            The measurement; None if somebody else killed the child, and this is not the last try.
        """
        match error:
            case DeadlineError():
                self._bury()
                self._raise_if_closed()
                what = f"took longer than {attempt.allowed_secs:g} s"
                return attempt.failed(ErrorKind.TIMEOUT, what)
            case ChildGoneError():
                death = self._bury(_GRACE_SECS)
                self._raise_if_closed()
                if death.exit_code == -SIGKILL and not death.was_alive:
                    return self._explain_kill(attempt, death, is_last=is_last)
                return self._explain(attempt, death)
            case _:
                self._bury()
                return attempt.failed(ErrorKind.CRASH, f"broke the pipe to its runner: {error}")

    def _explain(self, attempt: PhaseClock, death: Death) -> Measurement:
        if death.was_alive:
            return attempt.failed(ErrorKind.CRASH, f"closed the pipe to its runner{_words(death)}")
        says_so = any(word in death.last_words for word in _OUT_OF_MEMORY_WORDS)
        used_bytes = self._used_bytes(death)
        if used_bytes > _NEAR * attempt.limits.memory_bytes or (
            says_so and death.exit_code in (-SIGABRT, 1)
        ):
            used = f" with {used_bytes >> 20} MiB in use" if used_bytes else ""
            what = f"died of {death.cause}{used}{_words(death)}"
            return attempt.failed(ErrorKind.OUT_OF_MEMORY, what)
        return attempt.failed(ErrorKind.CRASH, f"died of {death.cause}{_words(death)}")

    def _used_bytes(self, death: Death) -> int:
        """Return the most memory that the last candidate had; 0 if that is not known."""
        assert self._host is not None
        # A peak that did not rise is a candidate's before it, or this process's own at the fork.
        has_risen = death.peak_bytes > self._peak_bytes
        return death.peak_bytes - self._host.resident_bytes if has_risen else 0

    def _explain_kill(
        self, attempt: PhaseClock, death: Death, *, is_last: bool
    ) -> Measurement | None:
        if self._system_ran_out_of_memory():
            what = f"was killed: the host ran out of memory{_words(death)}"
            return attempt.failed(ErrorKind.OUT_OF_MEMORY, what)
        if is_last:
            return attempt.failed(ErrorKind.CRASH, "was killed from outside, twice")
        return None

    def _living_child(self) -> ChildProcess:
        """Return the child, a new one if there is none or it died while it was idle."""
        if self._child is not None and not self._child.is_alive():
            self._bury()
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
            death = self._bury(_GRACE_SECS)
            self._raise_if_closed()
            cause = "no answer" if isinstance(error, DeadlineError) else death.cause
            raise ChildStartError(
                f"the child {self._child_module} can't start: {cause}: {death.last_words}"
            ) from error
        self._system_ran_out_of_memory()
        return child

    def _replace_if_spent(self, message: Mapping[str, Any]) -> None:
        """End a child that has computed for long: what it may compute in all is limited."""
        if message.get("is_spent") is True:
            self._bury()

    def _bury(self, grace_secs: float = 0.0) -> Death:
        with self._state:
            child, self._child = self._child, None
        return Death() if child is None else child.end(grace_secs)

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise RunnerClosedError("the runner was closed while it measured")

    def _system_ran_out_of_memory(self) -> bool:
        """Tell whether the kernel killed anyone for memory since the last call."""
        count = _oom_kills()
        grew, self._ooms_seen = count > self._ooms_seen, count
        return grew


def _words(death: Death) -> str:
    return f": {death.last_words}" if death.last_words else ""


def _oom_kills() -> int:
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    counts = (line.split() for line in text.splitlines())
    return next((int(count) for name, count in counts if name == "oom_kill"), 0)
