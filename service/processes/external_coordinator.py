"""A coordinator that runs in another process, as an API process sees it: by what it does."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select

from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState

PATIENCE_SECS = 60.0
"""A job that waits longer without any coordinator makes the service report it. Two leases; chosen.
"""


class ExternalCoordinator:
    """In the place of `CoordinatorThread` where the API runs alone; it starts and stops nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def is_running(self) -> bool:
        """Whether jobs are driven: one is, or none waits in vain."""
        now = utc_now()
        is_driven = (JobRow.state == JobState.RUNNING) & (JobRow.lease_until > now)
        with self._database.read() as session:
            oldest = session.scalar(
                select(func.min(JobRow.created_at)).where(JobRow.state == JobState.QUEUED)
            )
            if oldest is None or now - oldest < timedelta(seconds=PATIENCE_SECS):
                return True
            return session.scalar(select(JobRow.id).where(is_driven).limit(1)) is not None

    def start(self) -> None:
        """Do nothing: it has started elsewhere."""

    def wake(self) -> None:
        """Do nothing: coordinators look for jobs once a second."""

    def stop(self, timeout_secs: float) -> None:
        """Do nothing: it goes on."""
