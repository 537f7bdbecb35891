"""Jobs: what users asked for, and where it stands.

    queued --claim--> running --finish--> succeeded | failed | cancelled
       |                 |  ^
       | cancel          |  +-- claimed again when its lease ran out or its owner is gone
       v                 +--release--> queued   (an orderly shutdown)
    cancelled

Only the owner of the lease moves a running job on; `service.store.leases` holds those moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, Integer, String, Text, func, select, tuple_
from sqlalchemy.orm import Mapped, Session, mapped_column

from loopwright.models import EventKind, JobRead, JobState, Strategy
from service.errors import NotFoundError
from service.store import events
from service.store.base import Base, UtcDateTime, enum_column, utc_now


class JobRow(Base):
    """A tuning job; its counters change in the transaction that adds its trials."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_state_created_at", "state", "created_at"),
        Index("ix_jobs_created_at_id", "created_at", "id"),
        Index("ix_jobs_workload_key_target", "workload_key", "target"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    state: Mapped[JobState] = mapped_column(enum_column(JobState))
    workload_key: Mapped[str] = mapped_column(ForeignKey("workloads.key"))
    workload_name: Mapped[str] = mapped_column(String(255))
    target: Mapped[str] = mapped_column(ForeignKey("targets.name"))
    trials: Mapped[int] = mapped_column(Integer)  # the budget
    seed: Mapped[int] = mapped_column(Integer)
    strategy: Mapped[Strategy] = mapped_column(enum_column(Strategy))
    num_measured: Mapped[int] = mapped_column(Integer, default=0)
    best_secs: Mapped[float | None]
    default_secs: Mapped[float | None]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    error: Mapped[str | None] = mapped_column(Text)
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(String(255))
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    fruitless_claims: Mapped[int] = mapped_column(Integer, default=0)  # since the last trial


@dataclass(frozen=True)
class NewJob:
    """A job as it comes in; its workload and target are already kept."""

    workload_key: str
    workload_name: str
    target: str
    trials: int
    seed: int
    strategy: Strategy


def submit(session: Session, job: NewJob) -> JobRow:
    """Queue a job."""
    row = JobRow(
        id=uuid4(),
        state=JobState.QUEUED,
        workload_key=job.workload_key,
        workload_name=job.workload_name,
        target=job.target,
        trials=job.trials,
        seed=job.seed,
        strategy=job.strategy,
        num_measured=0,
        created_at=utc_now(),
        cancel_requested=False,
        fruitless_claims=0,
    )
    session.add(row)
    session.flush()
    record_state(session, row)
    return row


def record_state(session: Session, row: JobRow, **more: Any) -> None:
    """Tell the job's listeners the state that it has now."""
    payload = {"state": row.state.value, "error": row.error, **more}
    events.append(session, row.id, EventKind.STATE, payload)


def get(session: Session, job_id: UUID, *, lock: bool = False) -> JobRow:
    """Return a job, with its row locked until the transaction ends if `lock` is set.

    Raises:
        NotFoundError: If there is no such job.
    """
    row = session.get(JobRow, job_id, with_for_update=lock)
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    return row


def page(
    session: Session,
    *,
    limit: int,
    before: tuple[datetime, UUID] | None = None,
    state: JobState | None = None,
) -> list[JobRow]:
    """Return up to `limit` jobs, newest first, those older than `before`."""
    query = select(JobRow).order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tuple_(JobRow.created_at, JobRow.id) < tuple_(*before))
    if state is not None:
        query = query.where(JobRow.state == state)
    return list(session.scalars(query))


def count_by_state(session: Session) -> Mapping[JobState, int]:
    """Return how many jobs are in each state."""
    rows = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state))
    return {row[0]: row[1] for row in rows}


def cancel(session: Session, job_id: UUID) -> JobRow:
    """Stop a job: at once if it waits, at its owner's next look if it runs.

    A job that has ended stays as it is, so a cancel that is sent twice does no harm.

    Raises:
        NotFoundError: If there is no such job.
    """
    row = get(session, job_id, lock=True)
    if row.state is JobState.QUEUED:
        row.state, row.finished_at = JobState.CANCELLED, utc_now()
        record_state(session, row)
    elif row.state is JobState.RUNNING:
        row.cancel_requested = True
    return row


def read(row: JobRow) -> JobRead:
    """Return the job as the API shows it."""
    return JobRead.model_validate(row, from_attributes=True)
