"""Events of jobs, in an order that a stream can resume from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    String,
    bindparam,
    func,
    select,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime, utc_now
from service.store.database.bulk import insert_rows
from service.store.database.single_reads import SingleReads
from service.wire.models import Event, EventKind


class EventRow(Base):
    """One event. Ids grow and are never reused, even after rows are deleted."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_job_id_id", "job_id", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True
    )
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"))
    kind: Mapped[str] = mapped_column(String(32))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)


def append(session: Session, job_id: UUID, kind: EventKind, payload: Mapping[str, Any]) -> None:
    """Add an event to a job; it is visible when the caller's transaction commits."""
    session.add(EventRow(job_id=job_id, kind=kind.value, at=utc_now(), payload=dict(payload)))


def append_all(
    session: Session, kind: EventKind, payloads: Mapping[UUID, Mapping[str, Any]]
) -> None:
    """Add an event to each of several jobs, by one statement; see `append`."""
    now = utc_now()
    insert_rows(
        session,
        EventRow.__table__,  # type: ignore[arg-type]
        [
            {"job_id": job_id, "kind": kind.value, "at": now, "payload": dict(payload)}
            for job_id, payload in payloads.items()
        ],
    )


def after(session: Session, job_id: UUID, last_id: int, limit: int = 500) -> list[Event]:
    """Return the job's events whose id is greater than `last_id`, in order."""
    rows = session.scalars(
        select(EventRow)
        .where(EventRow.job_id == job_id, EventRow.id > last_id)
        .order_by(EventRow.id)
        .limit(limit)
    )
    return [_read(row) for row in rows]


def newest_id(session: Session) -> int:
    """Return the greatest id of all events, 0 without any."""
    return session.scalar(select(func.max(EventRow.id))) or 0


def of_all_after(reads: SingleReads, last_id: int, limit: int = 500) -> list[tuple[UUID, Event]]:
    """Return the events of all jobs whose id is greater than `last_id`, in order."""
    rows = reads.rows(_OF_ALL_AFTER, {"last_id": last_id, "limit": limit})
    return [
        (row.job_id, Event(id=row.id, kind=row.kind, at=row.at, payload=row.payload))
        for row in rows
    ]


_OF_ALL_AFTER = (
    select(EventRow.id, EventRow.job_id, EventRow.kind, EventRow.at, EventRow.payload)
    .where(EventRow.id > bindparam("last_id"))
    .order_by(EventRow.id)
    .limit(bindparam("limit"))
)


def _read(row: EventRow) -> Event:
    return Event(id=row.id, kind=row.kind, at=row.at, payload=row.payload)
