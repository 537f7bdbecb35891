"""The candidate: a sketch with all decisions made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compiler.schedule.trace.trace import Trace

DEFAULT_SKETCH = "default"
"""The sketch of the unscheduled program; its trace is empty."""


@dataclass(frozen=True)
class Candidate:
    """A schedule to measure: the name of its sketch, and a trace without open decisions."""

    sketch: str
    trace: Trace

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the trace: schedules with equal keys are the same."""
        return self.trace.key()


def default_candidate() -> Candidate:
    """Return the default schedule: the program without changes."""
    return Candidate(DEFAULT_SKETCH, Trace())
