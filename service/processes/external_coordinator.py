"""A coordinator in another process, as an API process sees it: by the state of the jobs."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select

from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState

PATIENCE_SECS = 60.0
"""If a job waits longer and no coordinator runs one, the service reports it. Two leases; chosen."""


class ExternalCoordinator:
    """Replaces `CoordinatorThread` in a process that runs only the API; starts nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def is_running(self) -> bool:
        """Return whether a job is running, or no job has waited too long."""
        now = utc_now()
        is_driven = (JobRow.state == JobState.RUNNING) & (JobRow.lease_until > now)
        with self._database.read() as session:
            oldest = session.scalar(
                # A job with a window may wait for hours.
                select(func.min(JobRow.created_at)).where(
                    JobRow.state == JobState.QUEUED, JobRow.window.is_(None)
                )
            )
            if oldest is None or now - oldest < timedelta(seconds=PATIENCE_SECS):
                return True
            return session.scalar(select(JobRow.id).where(is_driven).limit(1)) is not None

    def start(self) -> None:
        """Do nothing: it starts in its own process."""

    def wake(self) -> None:
        """Do nothing: coordinators poll the queue twice a second."""

    def stop(self, timeout_secs: float) -> None:
        """Do nothing: it continues."""
