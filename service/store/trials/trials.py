"""Trials: every measurement of every job, and the two keys that prevent duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import (
    JSON,
    ForeignKey,
    Index,
    Integer,
    Row,
    String,
    Text,
    UniqueConstraint,
    cast,
    false,
    func,
    select,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from compiler.runtime.measurement import STORED_FIELDS, ErrorKind
from service.common.errors import ServiceNotFoundError
from service.store.database.base import Base, UtcDateTime, enum_column
from service.store.trials.trial_columns import SOURCES
from service.wire.models import FinalRead, TrialRead


class TrialRow(Base):
    """One candidate of one job with its measurement.

    `best_secs` repeats the shortest of `run_secs`, so that SQL can compare trials. `decisions`
    repeats the decided numbers of the trace, so that plots need no traces; `SketchRow` has their
    labels.
    """

    __tablename__ = "trials"
    __table_args__ = (
        UniqueConstraint("job_id", "candidate_key"),
        # All that lists and plots need of a trial but its trace; see
        # `service.store.trials.trial_index`.
        Index("ix_trials_narrow", "job_id", *SOURCES),
    )

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    candidate_key: Mapped[str] = mapped_column(String(64))
    round: Mapped[int] = mapped_column(Integer)
    sketch: Mapped[str] = mapped_column(String(255))
    trace: Mapped[dict[str, Any]] = mapped_column(JSON)
    predicted: Mapped[float | None]
    error: Mapped[ErrorKind | None] = mapped_column(enum_column(ErrorKind))
    message: Mapped[str] = mapped_column(Text)
    run_secs: Mapped[list[float]] = mapped_column(JSON)
    best_secs: Mapped[float | None]
    max_error: Mapped[float | None]
    is_spot_checked: Mapped[bool] = mapped_column(default=False, server_default=false())
    build_secs: Mapped[float]
    check_secs: Mapped[float]
    time_secs: Mapped[float]
    worker: Mapped[str] = mapped_column(String(255))
    toolchain: Mapped[str] = mapped_column(String(255))
    resources: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    conditions: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    decisions: Mapped[list[int]] = mapped_column(JSON)


def of_job(session: Session, job_id: UUID) -> list[TrialRow]:
    """Return all trials of a job by number."""
    return list(
        session.scalars(select(TrialRow).where(TrialRow.job_id == job_id).order_by(TrialRow.number))
    )


def for_search(session: Session, job_id: UUID) -> Sequence[Row[Any]]:
    """Return what a search needs of the trials of a job, by number; traces are texts.

    A job that is taken over reads hundreds of traces of a few kilobytes, which differ little.
    """
    columns = ("number", "round", "sketch", "predicted", *STORED_FIELDS)
    query = select(
        *(getattr(TrialRow, name) for name in columns), cast(TrialRow.trace, Text).label("trace")
    )
    query = query.where(TrialRow.job_id == job_id).order_by(TrialRow.number)
    rows: Any = session.execute(query)
    return list(rows)


def get(session: Session, job_id: UUID, number: int) -> TrialRow:
    """Return a trial.

    Raises:
        ServiceNotFoundError: If the job has no trial of that number.
    """
    row = session.get(TrialRow, (job_id, number))
    if row is None:
        raise ServiceNotFoundError(f"job {job_id} has no trial {number}")
    return row


def provisional_secs(session: Session, job_id: UUID, number: int) -> float | None:
    """Return the shortest sample of a trial in seconds, without reading its trace."""
    query = select(TrialRow.best_secs).where(TrialRow.job_id == job_id, TrialRow.number == number)
    return session.scalar(query)


def explain_failures(session: Session, job_id: UUID) -> str:
    """Describe the failures of a job without a correct trial: counts by kind, first message."""
    count, first = func.count(), func.min(TrialRow.number)
    rows = session.execute(
        select(TrialRow.error, count, first)
        .where(TrialRow.job_id == job_id, TrialRow.error.is_not(None))
        .group_by(TrialRow.error)
        .order_by(count.desc(), first)
    ).all()
    if not rows:
        return "no trial was measured"
    counts = ", ".join(f"{number} {kind}" for kind, number, _ in rows)
    kind, _, number = rows[0]
    message = session.get_one(TrialRow, (job_id, number)).message
    total = sum(row[1] for row in rows)
    return (
        f"none of {total} trials is correct: {counts}; "
        f"trial {number}, the first {kind}: {message or 'no message'}"
    )


def provenance(row: TrialRow) -> dict[str, JsonValue]:
    """Return the worker, the target and the tools of a trial's measurement."""
    return {
        "worker": row.worker,
        "toolchain": row.toolchain,
        "measured_at": row.created_at.isoformat(),
        "max_error": row.max_error,
        "sketch": row.sketch,
    }


def read(row: TrialRow, final: FinalRead | None = None) -> TrialRead:
    """Return the trial as the API shows it, with its result in the final comparison."""
    trial = TrialRead.model_validate(row, from_attributes=True)
    return trial if final is None else trial.model_copy(update={"final": final})
