"""What the service answers about each subject: what is tuned as the jobs of a group."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from service.wire.models import JobState, Response


class SubjectSummary(Response):
    """A model or a search over ranges, with the sums of its jobs."""

    id: UUID
    name: str
    target: str
    owner: str | None  # the name of the token that submitted it
    created_at: datetime
    group_id: UUID  # of its jobs
    state: JobState  # of the jobs together
    max_trials: int  # which the jobs share
    num_measured: int  # trials of all jobs
