"""How far a comparison has come: which rounds are measured, and which candidates dropped out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.runtime.measurement import Measurement
from workers.compare import CompareRequest


class Comparison:
    """Takes what children say of a request; what is left of it goes to the next child.

    A child may die of a candidate. If nobody knows of which, the round is repeated with every turn
    announced.
    """

    def __init__(self, request: CompareRequest) -> None:
        self._request = request
        self._faults: dict[int, Measurement] = {}
        self._num_done = request.first_round
        self._is_careful = False
        self._places: list[int] = []
        self._running: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to time."""
        num_candidates = len(self._request.traces)
        return self._num_done >= self._request.num_rounds or len(self._faults) >= num_candidates

    def rest(self) -> CompareRequest:
        """Return what a new child is to do."""
        self._places = [p for p in range(len(self._request.traces)) if p not in self._faults]
        self._running = None
        return self._request.rest(self._places, self._num_done, is_careful=self._is_careful)

    def enter(self, place: int | None) -> None:
        """Take in whose run begins; None if they take turns."""
        self._running = None if place is None else self._places[place]

    def take_fault(self, told: Mapping[str, Any]) -> None:
        """Take in that a candidate dropped out."""
        self._faults[self._places[told["place"]]] = Measurement.from_json(told["fault"])

    def take_round(self, told: Mapping[str, Any]) -> list[Measurement]:
        """Take in a round; return a measurement of each candidate."""
        secs = {self._places[int(place)]: samples for place, samples in told["samples"].items()}
        self._num_done += 1
        return [
            self._faults.get(p) or Measurement(tuple(float(s) for s in secs[p]))
            for p in range(len(self._request.traces))
        ]

    def blame(self, failure: Measurement, *, is_of_all: bool = False) -> None:
        """Have whoever was running drop out; if that is not known, find out."""
        if is_of_all or (self._running is None and self._is_careful):
            self._faults |= dict.fromkeys(self._places, failure)
        elif self._running is None:
            self._is_careful = True
        else:
            self._faults[self._running] = failure

    def given_up(self) -> list[list[Measurement]]:
        """Return the rounds that were not measured, because every candidate dropped out."""
        faults = [fault for _, fault in sorted(self._faults.items())]
        return [faults] * (self._request.num_rounds - self._num_done)
