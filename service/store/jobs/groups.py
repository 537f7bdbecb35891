"""Groups: jobs that share one trial limit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Integer, bindparam, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.errors import ServiceNotFoundError
from service.store.database.base import Base, UtcDateTime, utc_now
from service.store.database.single_reads import SingleReads
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState


class GroupRow(Base):
    """A group of jobs whose trials are counted together; all else belongs to the jobs."""

    __tablename__ = "groups"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    max_trials: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def create(session: Session, max_trials: int) -> GroupRow:
    """Create a group without jobs."""
    row = GroupRow(id=uuid4(), max_trials=max_trials, created_at=utc_now())
    session.add(row)
    session.flush()
    return row


def get(session: Session, group_id: UUID, *, lock: bool = False) -> GroupRow:
    """Return a group, with its row locked until the transaction ends if `lock` is set.

    Raises:
        ServiceNotFoundError: If the group does not exist.
    """
    row = session.get(GroupRow, group_id, with_for_update=lock)
    if row is None:
        raise ServiceNotFoundError(f"no group {group_id}")
    return row


def members(session: Session, group_id: UUID, *, lock: bool = False) -> list[JobRow]:
    """Return the jobs of a group in the order of their submission."""
    query = select(JobRow).where(JobRow.group_id == group_id).order_by(JobRow.created_at, JobRow.id)
    return list(session.scalars(query.with_for_update() if lock else query))


def set_budget(row: GroupRow, jobs_of_it: Sequence[JobRow], max_trials: int) -> None:
    """Change the trial limit that jobs share; a job with its own limit keeps it."""
    for job in jobs_of_it:
        if job.max_trials == row.max_trials:
            job.max_trials = max_trials
    row.max_trials = max_trials


_WAITING = (
    select(JobRow.id)
    .where(JobRow.group_id == bindparam("group_id"), JobRow.state == JobState.QUEUED)
    .limit(1)
)


def has_waiting(reads: SingleReads, group_id: UUID) -> bool:
    """Return whether a job of a group waits for a coordinator."""
    return bool(reads.rows(_WAITING, {"group_id": group_id}))


def trials_left(session: Session, group_id: UUID) -> int:
    """Return how many trials the jobs of a group may still measure, all together."""
    measured = select(func.coalesce(func.sum(JobRow.num_measured), 0)).where(
        JobRow.group_id == group_id
    )
    return get(session, group_id).max_trials - (session.scalar(measured) or 0)
