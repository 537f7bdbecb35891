"""The contract of measurers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.task import Task


class Measurer(Protocol):
    """Builds, checks and times candidates.

    `tests/contracts/measurer.py` holds each implementation to this.
    """

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each candidate with its measurement, in the order of completion.

        Measuring may begin at the call. Every index comes exactly once. What goes wrong with a
        candidate is a measurement with an error; an exception means that measuring itself is
        broken, and ends the tuning. The iterator may be closed before its end: the rest is then
        abandoned.

        Args:
            incumbent_secs: The best time known, if any: a candidate that is clearly slower need
                not be timed in full.
        """
        ...
