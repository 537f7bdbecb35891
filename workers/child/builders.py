"""Builders: children without a device, which compile candidates while another child measures.

A kernel of a GPU takes NVRTC as long as several measurements of it. A crash, a hang or an error of
a build costs the trial of that candidate, and no child with a context on a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from queue import SimpleQueue

from compiler.executor.cores import available_cores
from compiler.runtime.measurement import Measurement
from workers.child.phase_clock import PhaseClock
from workers.child.supervisor import ChildSupervisor, RunnerClosedError
from workers.wire.built import BuiltCandidate
from workers.wire.frames import Message
from workers.wire.request import MeasureRequest

_MAX_BUILDERS = 4
"""A build takes 100 to 300 ms, a measurement about a quarter of it. Chosen."""


class Builders:
    """Compiles the candidates of requests, a few side by side, in the order of the requests.

    Args:
        module: The program of the children.
        settings: Further environment variables for the children.
    """

    def __init__(self, module: str, settings: Mapping[str, str]) -> None:
        num_builders = max(1, min(_MAX_BUILDERS, available_cores() // 2))
        self._children = [ChildSupervisor(module, (), settings) for _ in range(num_builders)]
        self._free: SimpleQueue[ChildSupervisor] = SimpleQueue()
        for child in self._children:
            self._free.put(child)
        self._threads = ThreadPoolExecutor(num_builders, thread_name_prefix="builder")

    @contextmanager
    def building(
        self, request: MeasureRequest
    ) -> Iterator[list[Future[BuiltCandidate | Measurement]]]:
        """Give the builds of all candidates of a request, which go on while the body runs.

        A failed build is a measurement. At the end, those that have not begun are left out.

        Raises:
            RunnerClosedError: If this is closed, here or as the result of a build.
        """
        builds = [self._submit(request.part([index])) for index in range(len(request.traces))]
        try:
            yield builds
        finally:
            for build in builds:
                build.cancel()

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

    def _submit(self, request: MeasureRequest) -> Future[BuiltCandidate | Measurement]:
        try:
            return self._threads.submit(self._build, request)
        except RuntimeError as error:
            if not self._children[0].is_closed:
                raise  # no thread can be started
            raise RunnerClosedError("the runner is closed") from error

    def _build(self, request: MeasureRequest) -> BuiltCandidate | Measurement:
        child = self._free.get()
        try:
            attempts = (_ask(child, request, is_last=is_last) for is_last in (False, True))
            outcome = next(outcome for outcome in attempts if outcome is not None)
            if isinstance(outcome, BuiltCandidate):
                return outcome
            assert child.host is not None
            return replace(outcome, toolchain=child.host.toolchain_for(request.target))
        finally:
            self._free.put(child)


def _ask(
    child: ChildSupervisor, request: MeasureRequest, *, is_last: bool
) -> BuiltCandidate | Measurement | None:
    message = {"build": request.to_json()}
    return child.ask(message, PhaseClock(request), _read, is_last=is_last)


def _read(answer: Message) -> BuiltCandidate | Measurement:
    if "built" in answer:
        return BuiltCandidate.from_json(answer["built"])
    return Measurement.from_json(answer["measurement"])
