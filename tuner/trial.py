"""The trial: one candidate of one job, with its measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """A measured candidate.

    `number` counts the proposals of a job from 0, so numbers may arrive out of order, and a job
    that was stopped may lack some. `predicted` is the cost model's score when the candidate was
    proposed (higher is faster; comparable within one round), None if there was no model yet.
    """

    number: int
    candidate: Candidate
    measurement: Measurement
    predicted: float | None = None
    round: int = 0

    @property
    def best_secs(self) -> float:
        """The shortest sample in seconds; infinity for a failure."""
        return self.measurement.best_secs


def fastest(trials: Iterable[MeasuredTrial]) -> MeasuredTrial | None:
    """Return the fastest correct trial, the earliest among equals."""
    right = (t for t in trials if t.measurement.ok)
    return min(right, key=lambda t: (t.best_secs, t.number), default=None)
