"""The candidate: a sketch with every decision taken."""

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
        """The SHA-256 of the trace: equal keys are the same schedule."""
        return self.trace.key()


def default_candidate() -> Candidate:
    """Return the default schedule: the program as it was given."""
    return Candidate(DEFAULT_SKETCH, Trace())
