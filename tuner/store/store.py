"""The contract of measurement stores: the trials of jobs, and the best of each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tuner.task import Task
from tuner.trial import MeasuredTrial


class DuplicateTrialError(ValueError):
    """A trial's number or candidate is already kept for its job; nothing of the call was kept."""


class MeasurementStore(Protocol):
    """Keeps every trial of every job.

    A store may be used from several threads. What `add` returned from is durable as far as the
    store is at all, and seen by every later call. `tests/contracts/measurement_store.py` holds
    each implementation to this.
    """

    def add(self, job_id: str, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Keep trials of a job, all of them or none.

        Raises:
            DuplicateTrialError: If a number or a candidate key is there already for this job, or
                twice in `trials`.
        """
        ...

    def trials(self, job_id: str) -> list[MeasuredTrial]:
        """Return the trials of a job by their numbers; an unknown job has none."""
        ...

    def best(self, task_key: str) -> MeasuredTrial | None:
        """Return the fastest correct trial of a task over all jobs; the earliest of equals."""
        ...
