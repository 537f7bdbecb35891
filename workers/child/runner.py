"""Run candidates in a disposable child, and return a measurement or an error for each.

A candidate can cost no more than its own trial: a child that crashed or overran a deadline is
killed with its whole group, and the next candidate gets a new one. `workers.child.supervisor` owns
the child, and `workers.child.diagnosis` says which error a death means.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from types import TracebackType
from typing import Self

from compiler.backends.host_device import HostDevice
from compiler.bounded_cache import BoundedCache
from compiler.executor.functions.imported import IMPORTED_VARIABLE, imports_of
from compiler.executor.functions.registry import ALLOWED_VARIABLE, allowed_functions
from compiler.runtime.measurement import ErrorKind, Measurement
from workers.child.builders import (
    Builders,
    BuildOutcome,
    RoundBuilds,
    num_device_builders,
    num_spare_builders,
)
from workers.child.device_lock import DeviceLock
from workers.child.host import Host
from workers.child.phase_clock import PhaseClock
from workers.child.race import Race
from workers.child.supervisor import FAULTS, ChildSupervisor
from workers.measure.compare import CompareRequest
from workers.measure.comparison import Comparison
from workers.wire.built import BuiltCandidate
from workers.wire.frames import Message
from workers.wire.phase import Phase
from workers.wire.request import MeasureLimits, MeasureRequest

_MAX_ORACLE_FAILURES = 16
"""Workloads that are remembered because the oracle can't run them under some limits. Chosen."""
_FAILURES_OF_WORKLOADS = (ErrorKind.TIMEOUT, ErrorKind.OUT_OF_MEMORY, ErrorKind.BUILD_ERROR)
"""Errors of the oracle that its next run would repeat."""
_NUM_SLOTS = 4
"""Workloads whose expected result outlives a child: a group interleaves several. Each takes up to
`workers.measure.shared_arrays.MAX_BYTES`. Chosen, not measured.
"""


def _allowing(functions: Collection[str]) -> Mapping[str, str]:
    """Return the settings of a child whose candidates may call functions."""
    if not functions:
        return {}
    names = sorted({*functions, *allowed_functions()})
    return {ALLOWED_VARIABLE: ",".join(names), IMPORTED_VARIABLE: imports_of(functions)}


class ChildRunner:
    """Measures candidates one at a time, each in a child that it can kill.

    The child starts with the first candidate and is kept for the next. Requests of several
    threads take turns by candidate. `close` ends the child and the measurement in progress.

    On a device, other children without it compile the next candidates meanwhile, a spare child is
    ready to take over after a fault, and other processes that use the same device take turns.

    On a CPU of several cores, other children may share the builds of long searches. They are
    suspended while the child checks and times a kernel, so that its cores are free.

    Args:
        limits: The limits of a candidate whose request has none.
        worker: The name under which measurements are reported.
        device: The device to measure on; None for the cores of the CPU.
        functions: Functions that candidates may call, besides those that the environment allows;
            the child imports those of this process.
        child_module: The program of the child; tests run one whose kernels have faults.

    Attributes:
        shares_builds: Whether other children share the builds of a CPU's candidates, from the
            second request of this runner on. It may be changed between requests.
    """

    def __init__(
        self,
        limits: MeasureLimits | None = None,
        *,
        worker: str | None = None,
        device: HostDevice | None = None,
        functions: Collection[str] = (),
        child_module: str = "workers.child.child",
    ) -> None:
        self.limits = limits or MeasureLimits()
        self.worker = worker or f"{socket.gethostname()}/{os.getpid()}"
        self.device = device
        self._turn = threading.Lock()
        self._oracle_failures: BoundedCache[tuple[str, MeasureLimits], Measurement]
        self._oracle_failures = BoundedCache(_MAX_ORACLE_FAILURES)
        self._slots = [os.memfd_create("loopwright-shelf") for _ in range(_NUM_SLOTS)]
        allowing = _allowing(functions)
        # On the CPU, a spare that starts beside a timed kernel would disturb it.
        self._child = ChildSupervisor(
            child_module,
            self._slots,
            {**(device.settings if device else {}), **allowing},
            has_spare=device is not None,
        )
        self.shares_builds = False
        self._num_requests = 0
        self._builders: Builders | None = None
        if device is not None:
            self._builders = Builders(child_module, device.without, num_device_builders())
        elif num_builders := num_spare_builders():
            self._builders = Builders(child_module, allowing, num_builders)
        self._lock = DeviceLock(device.uuid) if device and device.uuid else None

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, in order.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        request = replace(request, limits=request.limits or self.limits)
        for index, measurement in enumerate(self._measurements(request)):
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
            with self._measuring_turn():
                is_last = not self._add_rounds(request, comparison, rounds, is_last=is_last)
            yield [self._stamped(measured, request.target) for measured in rounds]
        yield [self._stamped(measured, request.target) for measured in comparison.skipped_rounds()]

    def start(self) -> None:
        """Start a child, without waiting until it is ready.

        Raises:
            RunnerClosedError: If the runner was closed.
        """
        with self._turn:
            self._child.start_ahead()

    def host(self) -> Host:
        """Return the facts of this host, as the child reports them; start a child if needed.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If the runner was closed.
        """
        with self._turn:
            if self._child.host is None:
                self._child.living()
            assert self._child.host is not None
            return self._child.host

    @property
    def child_pid(self) -> int | None:
        """Return the process id of the child; None without a child."""
        return self._child.child_pid

    def release(self) -> None:
        """End all children to free their memory; the next candidate starts others."""
        with self._turn:
            self._child.end_all()
            if self._builders is not None:
                self._builders.release()

    def close(self) -> None:
        """End all children and abandon the current measurement; a second call does nothing."""
        self._child.close()
        if self._builders is not None:
            self._builders.close()
        with self._turn:
            self._child.end_all()
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

    def _measurements(self, request: MeasureRequest) -> Iterator[Measurement]:
        candidates = [request.part([index]) for index in range(len(request.traces))]
        # Builders take as long to start as the first round takes: short searches do without.
        is_first, self._num_requests = self._num_requests == 0, self._num_requests + 1
        is_alone = self.device is None and (is_first or not self.shares_builds)
        if self._builders is None or is_alone:
            for candidate in candidates:
                with self._measuring_turn():
                    measurement = self._measure_one(candidate)
                yield measurement
            return
        with self._builders.building(request) as builds:
            for index, candidate in enumerate(candidates):
                yield self._known_failure(candidate) or self._measure_built(
                    candidate, self._outcome(builds, index)
                )

    def _outcome(self, builds: RoundBuilds, index: int) -> BuildOutcome:
        """Return the outcome of a build; meanwhile the child of a CPU builds, too."""
        assert self._builders is not None, "they build"
        while self.device is None and not (self._builders.are_ready and builds.is_done(index)):
            other = builds.take()
            if other is None:
                break
            with self._turn:
                builds.build(other, self._child)
        return builds.wait_for(index)

    def _measure_built(self, candidate: MeasureRequest, built: BuildOutcome) -> Measurement:
        if isinstance(built, Measurement):
            return built
        with self._measuring_turn():
            return self._measure_one(candidate, built)

    @contextmanager
    def _measuring_turn(self) -> Iterator[None]:
        """Exclude other threads, the builders of a CPU, and other processes on the device."""
        with ExitStack() as stack:
            stack.enter_context(self._turn)
            if self._lock is not None:
                stack.enter_context(self._lock.taken(lambda: self._child.is_closed))
            if self._builders is not None and self.device is None:
                stack.enter_context(self._builders.suspended())
            yield

    def _measure_one(
        self, request: MeasureRequest, built: BuiltCandidate | None = None
    ) -> Measurement:
        if (failure := self._known_failure(request)) is not None:
            return failure
        message: Message = request.to_json()
        if built is not None:
            message = {"measure": message, "built": asdict(built)}
        # A child that another process killed is not the candidate's fault: try again once.
        measurement = self._attempt(message, request, is_last=False) or self._attempt(
            message, request, is_last=True
        )
        assert measurement is not None
        assert self._child.host is not None
        return replace(measurement, toolchain=self._child.host.toolchain_for(request.target))

    def _known_failure(self, request: MeasureRequest) -> Measurement | None:
        """Return the failure of the oracle: every candidate would wait for it in vain."""
        assert request.limits is not None, "`measure` filled them in"
        return self._oracle_failures.get((request.workload, request.limits))

    def _give_up_workload(self, request: MeasureRequest, failure: Measurement) -> None:
        assert request.limits is not None, "`measure` filled them in"
        assert self._child.host is not None
        stamped = replace(failure, toolchain=self._child.host.toolchain_for(request.target))
        self._oracle_failures.put((request.workload, request.limits), stamped)

    def _attempt(
        self, message: Message, request: MeasureRequest, *, is_last: bool
    ) -> Measurement | None:
        """Have a child measure the candidate.

        Returns:
            The measurement; None if another process killed the child, and an attempt is left.
        """
        attempt = PhaseClock(request)
        measurement = self._child.ask(message, attempt, _read, is_last=is_last)
        is_of_workload = measurement and measurement.error in _FAILURES_OF_WORKLOADS
        if measurement and is_of_workload and attempt.is_of_the_oracle:
            self._give_up_workload(request, measurement)
        return measurement

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
        child = self._child.living()
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
            self._child.note(message)
        except FAULTS as error:
            failure = self._child.failure(attempt, error, is_last=is_last)
            if failure is None:
                return False
            comparison.blame(failure, is_of_all=attempt.is_of_the_oracle)
        except BaseException:
            self._child.end()
            raise
        return True

    def _race(self, request: CompareRequest) -> list[list[Measurement]]:
        """Time a candidate beside libraries, in separate children; first end this runner's."""
        with self._measuring_turn():
            if self._child.host is None:
                self._child.living()
            self._child.end_all()
            try:
                rounds = Race(request, self._child.open_for_race).rounds()
            finally:
                self._child.end_race()
        self._child.raise_if_closed()
        return rounds

    def _stamped(self, measured: list[Measurement], target: str) -> list[Measurement]:
        assert self._child.host is not None
        made_by = self._child.host.toolchain_for(target)
        return [replace(m, worker=self.worker, toolchain=m.toolchain or made_by) for m in measured]


def _read(answer: Message) -> Measurement:
    return Measurement.from_json(answer["measurement"])
