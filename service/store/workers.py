"""Workers: who measures, as last heard of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, String, delete, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from loopwright.models import WorkerRead, WorkerState
from service.store.base import Base, UtcDateTime, enum_column, utc_now
from workers.engine import WorkerFacts

LOST_AFTER_SECS = 60.0


class WorkerRow(Base):
    """A worker process on a host."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    label: Mapped[str] = mapped_column(String(255))
    state: Mapped[WorkerState] = mapped_column(enum_column(WorkerState))
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)


def heard_of(session: Session, seen: Sequence[WorkerFacts]) -> None:
    """Record what an engine says of its workers."""
    for worker in seen:
        session.merge(
            WorkerRow(
                name=worker.name,
                host=worker.host,
                label=worker.label,
                state=WorkerState.BUSY if worker.is_busy else WorkerState.IDLE,
                last_seen_at=datetime.fromtimestamp(worker.last_seen, UTC),
                facts={**worker.facts, "pid": worker.pid},
            )
        )


def forget_lost(session: Session, *, after: timedelta = timedelta(hours=1)) -> None:
    """Drop workers not heard of for so long that nobody asks what became of them."""
    session.execute(delete(WorkerRow).where(WorkerRow.last_seen_at < utc_now() - after))


def forget(session: Session, names: Sequence[str]) -> None:
    """Drop workers that were ended in good order."""
    for name in names:
        if (row := session.get(WorkerRow, name)) is not None:
            session.delete(row)


def everyone(session: Session) -> list[WorkerRead]:
    """Return all workers by name; one not heard of for a minute is lost."""
    oldest = utc_now() - timedelta(seconds=LOST_AFTER_SECS)
    return [
        WorkerRead(
            name=row.name,
            host=row.host,
            label=row.label,
            state=row.state if row.last_seen_at >= oldest else WorkerState.LOST,
            last_seen_at=row.last_seen_at,
            facts=row.facts,
        )
        for row in session.scalars(select(WorkerRow).order_by(WorkerRow.name))
    ]
