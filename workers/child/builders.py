"""Builders: children that only compile candidates, beside the child that measures.

For a device they compile all candidates, because a kernel of a GPU takes NVRTC as long as several
measurements, and a build that crashes must cost no child with a context on a device. For a CPU they
share the builds with the child that measures, and are suspended while a kernel runs there. A crash,
a hang or an error of a build costs the trial of that candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from queue import SimpleQueue
from threading import Lock
from typing import TypeAlias

from compiler.executor.cores import available_cores
from compiler.runtime.measurement import Measurement
from workers.child.phase_clock import PhaseClock
from workers.child.supervisor import ChildStartError, ChildSupervisor, RunnerClosedError
from workers.wire.built import BuiltCandidate
from workers.wire.frames import Message
from workers.wire.request import MeasureRequest

_MAX_BUILDERS = 4
"""A build for a GPU takes 100 to 300 ms, a measurement about a quarter of it; on a CPU, a build
takes three times as long as a measurement. Chosen.
"""

BuildOutcome: TypeAlias = BuiltCandidate | Measurement
"""A built candidate, or the measurement of a build that failed."""


def num_device_builders() -> int:
    """Return the number of builders for a device, which leave cores to the search."""
    return max(1, min(_MAX_BUILDERS, available_cores() // 2))


def num_spare_builders() -> int:
    """Return the number of builders beside a child that builds and measures; 0 on one core."""
    return min(_MAX_BUILDERS, available_cores() - 1)


class RoundBuilds:
    """The builds of a request's candidates, each taken once, in order, by a free child."""

    def __init__(self, request: MeasureRequest) -> None:
        self._request = request
        self._outcomes: list[Future[BuildOutcome]] = [Future() for _ in request.traces]
        self._num_taken = 0
        self._lock = Lock()

    def take(self) -> int | None:
        """Return the index of the first candidate that is not taken yet; None without one."""
        with self._lock:
            if self._num_taken == len(self._outcomes):
                return None
            self._num_taken += 1
            return self._num_taken - 1

    def abandon(self) -> None:
        """Leave out the candidates that are not taken yet."""
        with self._lock:
            self._num_taken = len(self._outcomes)

    def build(self, index: int, child: ChildSupervisor) -> None:
        """Build a candidate that was taken, in a child.

        Raises:
            ChildStartError: If the child can't be started; `wait_for` raises the same.
            RunnerClosedError: If the child was closed; `wait_for` raises the same.
        """
        try:
            outcome = _build(child, self._request.part([index]))
        except BaseException as error:
            self._outcomes[index].set_exception(error)
            raise
        self._outcomes[index].set_result(outcome)

    def is_done(self, index: int) -> bool:
        """Return whether the build of a candidate has ended."""
        return self._outcomes[index].done()

    def wait_for(self, index: int) -> BuildOutcome:
        """Return the outcome of a build, once it has ended.

        Raises:
            ChildStartError: If no child could be started for it.
            RunnerClosedError: If its child was closed.
        """
        return self._outcomes[index].result()


class Builders:
    """Compiles the candidates of requests, a few side by side, in the order of the requests.

    Args:
        module: The program of the children.
        settings: Further environment variables for the children.
        num_builders: The number of children, at least one.
    """

    def __init__(self, module: str, settings: Mapping[str, str], num_builders: int) -> None:
        self._children = [ChildSupervisor(module, (), settings) for _ in range(num_builders)]
        self._free: SimpleQueue[ChildSupervisor] = SimpleQueue()
        for child in self._children:
            self._free.put(child)
        self._threads = ThreadPoolExecutor(num_builders, thread_name_prefix="builder")

    @contextmanager
    def building(self, request: MeasureRequest) -> Iterator[RoundBuilds]:
        """Give the builds of a request, which go on while the body runs.

        At the end, those that have not begun are left out.

        Raises:
            RunnerClosedError: If this is closed.
        """
        builds = RoundBuilds(request)
        try:
            for _ in self._children:
                self._submit(builds)
            yield builds
        finally:
            builds.abandon()

    @property
    def are_ready(self) -> bool:
        """Return whether all children have started."""
        return all(child.is_ready for child in self._children)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend all children while the body runs; first wait for those that start."""
        with ExitStack() as stack:
            for child in self._children:
                stack.enter_context(child.suspended())
            yield

    def release(self) -> None:
        """End the children that do nothing; the next request starts others."""
        for _ in self._children:
            child = self._free.get()
            child.end_all()
            self._free.put(child)

    def close(self) -> None:
        """Kill all children, from any thread; all builds raise `RunnerClosedError` from then on."""
        for child in self._children:
            child.close()
        # Builds that have not begun are not cancelled: they fail at once, as those in progress.
        self._threads.shutdown(wait=True)
        for child in self._children:
            child.end_all()

    def _submit(self, builds: RoundBuilds) -> None:
        try:
            self._threads.submit(self._work, builds)
        except RuntimeError as error:
            if not self._children[0].is_closed:
                raise  # no thread can be started
            raise RunnerClosedError("the runner is closed") from error

    def _work(self, builds: RoundBuilds) -> None:
        """Build candidates in a free child until all are taken."""
        child = self._free.get()
        try:
            while True:
                # A start takes as long as many builds: the candidate would wait for it, although
                # another child may be free. An error of the start is that of the next build.
                with suppress(ChildStartError, RunnerClosedError):
                    child.living()
                index = builds.take()
                if index is None:
                    return
                with suppress(Exception):  # the thread that waits for this build gets its error
                    builds.build(index, child)
        finally:
            self._free.put(child)


def _build(child: ChildSupervisor, request: MeasureRequest) -> BuildOutcome:
    attempts = (_ask(child, request, is_last=is_last) for is_last in (False, True))
    outcome = next(outcome for outcome in attempts if outcome is not None)
    if isinstance(outcome, BuiltCandidate):
        return outcome
    assert child.host is not None
    return replace(outcome, toolchain=child.host.toolchain_for(request.target))


def _ask(child: ChildSupervisor, request: MeasureRequest, *, is_last: bool) -> BuildOutcome | None:
    message = {"build": request.to_json()}
    return child.ask(message, PhaseClock(request), _read, is_last=is_last)


def _read(answer: Message) -> BuildOutcome:
    if "built" in answer:
        return BuiltCandidate.from_json(answer["built"])
    return Measurement.from_json(answer["measurement"])
