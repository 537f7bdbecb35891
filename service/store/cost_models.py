"""Cost models: what each job learned from its measurements, and how well it predicted."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    UniqueConstraint,
    func,
    select,
)
from sqlalchemy.orm import Mapped, Session, defer, mapped_column

from loopwright.models import CostModelRead
from service.store.base import Base, UtcDateTime, utc_now


class CostModelRow(Base):
    """One version of the model of one kind of target."""

    __tablename__ = "cost_models"
    __table_args__ = (UniqueConstraint("label", "version"), UniqueConstraint("job_id"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    label: Mapped[str] = mapped_column(String(255))  # the kind of target, as in `targets.label`
    version: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"))
    feature_version: Mapped[int] = mapped_column(Integer)
    trained_on: Mapped[int] = mapped_column(Integer)  # how many measurements
    quality: Mapped[dict[str, Any]] = mapped_column(JSON)
    blob: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def add(
    session: Session,
    *,
    label: str,
    job_id: UUID,
    feature_version: int,
    trained_on: int,
    quality: dict[str, Any],
    blob: bytes,
) -> None:
    """Keep the model of a job as the next version of its kind of target."""
    newest = select(func.max(CostModelRow.version)).where(CostModelRow.label == label)
    session.add(
        CostModelRow(
            label=label,
            version=(session.scalar(newest) or 0) + 1,
            job_id=job_id,
            feature_version=feature_version,
            trained_on=trained_on,
            quality=quality,
            blob=blob,
            created_at=utc_now(),
        )
    )
    session.flush()


def newest_first(session: Session, *, limit: int) -> list[CostModelRead]:
    """Return what is known of the newest models, without the models themselves."""
    rows = session.scalars(
        select(CostModelRow)
        .options(defer(CostModelRow.blob))
        .order_by(CostModelRow.id.desc())
        .limit(limit)
    )
    return [
        CostModelRead(
            label=row.label,
            version=row.version,
            job_id=row.job_id,
            feature_version=row.feature_version,
            trained_on=row.trained_on,
            quality=row.quality,
            created_at=row.created_at,
        )
        for row in rows
    ]
