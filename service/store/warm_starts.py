"""Warm starts: what each job began with, so that it goes on from the same if it is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.base import Base, UtcDateTime, utc_now


class WarmStartRow(Base):
    """The cost model and the candidates that a job began with.

    A candidate is an object of `sketch` and `trace`, and of where it is from: `job_id` and
    `trial_number` of the relative's trial, and `distance`, how far off that task is.
    """

    __tablename__ = "warm_starts"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    cost_model_id: Mapped[int | None] = mapped_column(ForeignKey("cost_models.id"))
    candidates: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def find(session: Session, job_id: UUID) -> WarmStartRow | None:
    """Return what a job began with, none if it did not begin yet."""
    return session.get(WarmStartRow, job_id)


def keep(
    session: Session,
    job_id: UUID,
    *,
    cost_model_id: int | None = None,
    candidates: Sequence[dict[str, Any]] = (),
) -> WarmStartRow:
    """Note what a job begins with; by default nothing."""
    row = WarmStartRow(
        job_id=job_id,
        cost_model_id=cost_model_id,
        candidates=list(candidates),
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    return row
