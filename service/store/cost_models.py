"""Cost models: versions by kind of target, and the quality of each on held-out data."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    delete,
    func,
    select,
    text,
)
from sqlalchemy.orm import Mapped, Session, defer, mapped_column

from compiler.target.target import kind_of_label
from service.store.database.base import Base, UtcDateTime, utc_now
from service.wire.models import CostModelRead
from tuner.cost_model import stored_format
from tuner.cost_model.cost_model import CostModelError
from tuner.space.registry import SEARCH_SPACES

_NEWEST = 4
"""Number of models to try, newest first, until one can be read. Chosen."""


class CostModelRow(Base):
    """One version of the model of one kind of target.

    A model was trained by one job, or (without a job) on the whole store.
    """

    __tablename__ = "cost_models"
    __table_args__ = (UniqueConstraint("label", "version"), UniqueConstraint("job_id"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    label: Mapped[str] = mapped_column(String(255))  # `Target.timing_label`
    version: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[UUID | None] = mapped_column(ForeignKey("jobs.id"))
    feature_version: Mapped[int] = mapped_column(Integer)
    trained_on: Mapped[int] = mapped_column(Integer)  # how many measurements
    num_tasks: Mapped[int] = mapped_column(Integer, server_default=text("1"))  # they are of
    fingerprint: Mapped[str | None] = mapped_column(String(64))  # of the data
    quality: Mapped[dict[str, Any]] = mapped_column(JSON)
    blob: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


@dataclass(frozen=True)
class NewCostModel:
    """A trained model to store; `quality` is shown unchanged."""

    label: str
    blob: bytes
    trained_on: int
    job_id: UUID | None = None
    num_tasks: int = 1
    fingerprint: str | None = None
    quality: dict[str, Any] = field(default_factory=dict)


def add(session: Session, model: NewCostModel) -> CostModelRow:
    """Store a model as the next version of its kind of target, with the current feature version.

    A newer model of a job replaces the one that the job stored at an earlier end.
    """
    newest = select(func.max(CostModelRow.version)).where(CostModelRow.label == model.label)
    version = (session.scalar(newest) or 0) + 1
    if model.job_id is not None:
        session.execute(delete(CostModelRow).where(CostModelRow.job_id == model.job_id))
    row = CostModelRow(
        label=model.label,
        version=version,
        job_id=model.job_id,
        feature_version=feature_version(model.label),
        trained_on=model.trained_on,
        num_tasks=model.num_tasks,
        fingerprint=model.fingerprint,
        quality=model.quality,
        blob=model.blob,
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    return row


def feature_version(label: str) -> int:
    """Return the current version of the features for a kind of target."""
    return SEARCH_SPACES.find(kind_of_label(label)).feature_version


def newest_usable(session: Session, label: str) -> CostModelRow | None:
    """Return the newest usable model of the whole store for a kind of target, or None.

    Models of other versions and damaged ones are skipped: a job then starts with an older one or
    none.
    """
    rows = session.scalars(
        select(CostModelRow)
        .where(
            CostModelRow.label == label,
            CostModelRow.job_id.is_(None),
            CostModelRow.feature_version == feature_version(label),
        )
        .order_by(CostModelRow.version.desc())
        .limit(_NEWEST)
    )
    for row in rows:
        try:
            stored_format.check(row.blob, kind_of_label(label))
        except CostModelError:
            continue
        return row
    return None


def newest_first(session: Session, *, limit: int) -> list[CostModelRead]:
    """Return the metadata of the newest models, without the models themselves."""
    rows = session.scalars(
        select(CostModelRow)
        .options(defer(CostModelRow.blob))
        .order_by(CostModelRow.id.desc())
        .limit(limit)
    )
    return [read(row) for row in rows]


def read(row: CostModelRow) -> CostModelRead:
    """Return a model's metadata as the API shows it."""
    return CostModelRead.model_validate(row, from_attributes=True)
