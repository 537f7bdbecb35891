"""The seat of a coordinator at a shared engine: it interrupts only requests of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from compiler.runtime.measurement import Measurement
from service.processes.engine_supervisor import EngineSupervisor
from workers.engine.engine import Requester, Standing, alone
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

_numbers = count()


class EngineSeat:
    """Measures requests of one coordinator, which share the part of one; a `RequestMeasurer`."""

    def __init__(self, workers: EngineSupervisor) -> None:
        self._workers = workers
        self._name = f"seat {next(_numbers)}"
        self._num_interrupts = 0
        self._standing: Callable[[], Standing] = alone

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each of the request's traces with its measurement."""
        return self._workers.measure(request, self._requester())

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds, each with a measurement of each of the request's traces."""
        return self._workers.compare(request, self._requester())

    def share(self, target: str) -> float:
        """Return how many workers a request may expect beside those of other coordinators."""
        return self._workers.share(target, self._standing().owner)

    def stand(self, standing: Callable[[], Standing]) -> None:
        """Measure the next requests with a standing among those of other coordinators."""
        self._standing = standing

    def interrupt(self) -> None:
        """End the current requests with an error; the workers finish their current batches."""
        self._num_interrupts += 1

    def _requester(self) -> Requester:
        """Return a requester that the next interrupts concern, not those before."""
        num_before = self._num_interrupts
        return Requester(lambda: self._num_interrupts > num_before, self._standing, self._name)
