"""What a token may have queued at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """Limits of a token; none of them by default.

    `max_jobs` counts queued and running jobs, `max_trials` what those have yet to measure, and
    `max_priority` is the highest priority of a job.
    """

    max_jobs: int | None = None
    max_trials: int | None = None
    max_priority: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether what is queued has to be counted."""
        return self.max_jobs is not None or self.max_trials is not None


NO_LIMITS = Quota()
