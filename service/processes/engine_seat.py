"""The seat of a coordinator at a shared engine: it interrupts only requests of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event

from compiler.runtime.measurement import Measurement
from service.processes.engine_supervisor import EngineSupervisor
from workers.engine.engine import Requester, Standing
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest


class EngineSeat:
    """Measures requests of one coordinator, one at a time; a `RequestMeasurer`."""

    def __init__(self, workers: EngineSupervisor) -> None:
        self._workers = workers
        self._is_interrupted = Event()
        self._requester = Requester(self._is_interrupted.is_set)

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each of the request's traces with its measurement."""
        self._is_interrupted.clear()
        return self._workers.measure(request, self._requester)

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds, each with a measurement of each of the request's traces."""
        self._is_interrupted.clear()
        return self._workers.compare(request, self._requester)

    def stand(self, standing: Callable[[], Standing]) -> None:
        """Measure the next requests with a standing among those of other coordinators."""
        self._requester = replace(self._requester, standing=standing)

    def interrupt(self) -> None:
        """End the current request with an error; the workers finish their current batches."""
        self._is_interrupted.set()
