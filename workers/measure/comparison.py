"""The progress of a comparison: the measured rounds, and the contestants that dropped out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.runtime.measurement import ErrorKind, Measurement
from workers.measure.compare import CompareRequest

_ALONE = Measurement(
    error=ErrorKind.BUILD_ERROR, message="there is nothing left to compare it with"
)


class Comparison:
    """Collects the answers of children to a request; the rest goes to the next child.

    A contestant may crash its child. If it is unknown which, the round is repeated with every turn
    announced.
    """

    def __init__(self, request: CompareRequest) -> None:
        self._request = request
        self._faults: dict[int, Measurement] = {}
        self._num_done = request.first_round
        self._is_careful = False
        self._indices: list[int] = []
        self._running: int | None = None

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to time."""
        if self._num_done >= self._request.num_rounds:
            return True
        return not self._request.is_contest(self._remaining())

    def remainder(self) -> CompareRequest:
        """Return the request for a new child."""
        self._indices = self._remaining()
        self._running = None
        return self._request.remainder(self._indices, self._num_done, is_careful=self._is_careful)

    def enter(self, index: int | None) -> None:
        """Record the contestant whose run begins; None if they take turns."""
        self._running = None if index is None else self._indices[index]

    def take_fault(self, message: Mapping[str, Any]) -> None:
        """Record that a contestant dropped out."""
        self._faults[self._indices[message["contestant"]]] = Measurement.from_json(message["fault"])

    def take_round(self, message: Mapping[str, Any]) -> list[Measurement]:
        """Record a round; return a measurement of each contestant."""
        secs = {self._indices[int(index)]: samples for index, samples in message["samples"].items()}
        self._num_done += 1
        return [
            self._faults.get(contestant) or Measurement(tuple(float(s) for s in secs[contestant]))
            for contestant in range(self._request.num_contestants)
        ]

    def blame(self, failure: Measurement, *, is_of_all: bool = False) -> None:
        """Drop the contestant that was running; if it is unknown, find it."""
        if is_of_all or (self._running is None and self._is_careful):
            self._faults |= dict.fromkeys(self._indices, failure)
        elif self._running is None:
            self._is_careful = True
        else:
            self._faults[self._running] = failure

    def skipped_rounds(self) -> list[list[Measurement]]:
        """Return the rounds that were not measured, because too few contestants are left."""
        if self._request.is_contest(self._remaining()):
            return []
        faults = [self._faults.get(p, _ALONE) for p in range(self._request.num_contestants)]
        return [faults] * (self._request.num_rounds - self._num_done)

    def _remaining(self) -> list[int]:
        return [p for p in range(self._request.num_contestants) if p not in self._faults]
