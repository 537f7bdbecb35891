"""Worker samples: the health of workers over time, across restarts of their processes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import String, delete, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime, utc_now
from service.wire.server_models import Canary

KEPT = timedelta(days=7)
"""Older samples are deleted. Chosen."""
SHOWN = 500
"""Number of newest samples to show of a worker: about eight hours at one a minute."""


class WorkerSampleRow(Base):
    """One sample of a worker: the canary's time, its noise, and the share of time with work."""

    __tablename__ = "worker_samples"

    worker: Mapped[str] = mapped_column(String(255), primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime, primary_key=True)
    secs: Mapped[float]
    noise: Mapped[float]
    utilisation: Mapped[float]


def keep(session: Session, samples: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the samples of workers by their names; a repeated one is stored once."""
    rows = [
        WorkerSampleRow(
            worker=worker,
            at=datetime.fromtimestamp(sample["at"], UTC),
            secs=sample["secs"],
            noise=sample["noise"],
            utilisation=sample["utilisation"],
        )
        for worker, sample in samples.items()
    ]
    if not rows:
        return
    newest = session.execute(
        select(WorkerSampleRow.worker, WorkerSampleRow.at).where(
            WorkerSampleRow.worker.in_(samples),
            WorkerSampleRow.at >= min(row.at for row in rows),
        )
    )
    stored = {tuple(key) for key in newest}
    session.add_all(row for row in rows if (row.worker, row.at) not in stored)


def forget_old(session: Session) -> None:
    """Delete samples that are too old to describe the current host."""
    session.execute(delete(WorkerSampleRow).where(WorkerSampleRow.at < utc_now() - KEPT))


def of(session: Session, worker: str) -> Canary:
    """Return the newest samples of a worker as columns, the oldest first."""
    newest = (
        select(WorkerSampleRow)
        .where(WorkerSampleRow.worker == worker)
        .order_by(WorkerSampleRow.at.desc())
        .limit(SHOWN)
    )
    rows = list(session.scalars(newest))[::-1]
    return Canary(
        at=tuple(row.at for row in rows),
        secs=tuple(row.secs for row in rows),
        noise=tuple(row.noise for row in rows),
        utilisation=tuple(row.utilisation for row in rows),
    )
