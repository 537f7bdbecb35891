"""What a search of one task may begin with: what searches of other tasks learned."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.candidate import Candidate


@dataclass(frozen=True)
class WarmStart:
    """A trained cost model, and schedules of related tasks, refitted to this one.

    A warm start is part of what decides a search's proposals, as the seed is: a job that is to be
    resumed needs the same one again.

    Attributes:
        cost_model: A model as stored bytes, whose feature version is today's; None for none.
        candidates: Candidates of this task's design space, the most promising first, all
            different. A search measures them before what it comes across itself.
    """

    cost_model: bytes | None = None
    candidates: tuple[Candidate, ...] = ()


COLD = WarmStart()
"""To begin with nothing."""
