"""The quota of a token: limits on its queued and running jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """Limits of a token; by default there are none.

    `max_jobs` limits queued and running jobs, and `max_trials` the trials that they have yet to
    measure. `max_priority` is the highest priority of a job.
    """

    max_jobs: int | None = None
    max_trials: int | None = None
    max_priority: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Return whether the queued jobs must be counted."""
        return self.max_jobs is not None or self.max_trials is not None


NO_LIMITS = Quota()
