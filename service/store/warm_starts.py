"""Warm starts: what each job began with, so that it goes on from the same if it is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, ForeignKeyConstraint, Integer, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.cost_models import CostModelRow
from service.store.database.base import Base, UtcDateTime, utc_now
from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.targets import TargetRow
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow

MAX_OUTCOMES = 1000
"""The newest of them are looked at."""


class WarmStartRow(Base):
    """The cost model that a job began with, none for an untrained one."""

    __tablename__ = "warm_starts"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    cost_model_id: Mapped[int | None] = mapped_column(ForeignKey(CostModelRow.id))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class WarmCandidateRow(Base):
    """A candidate that a job began with, made from a trial of a relative.

    `distance` says how far off the relative is, and `source_rank` which of its trials it was, 0
    for the fastest.
    """

    __tablename__ = "warm_candidates"
    __table_args__ = (
        ForeignKeyConstraint(
            ["source_job_id", "source_number"], ["trials.job_id", "trials.number"]
        ),
    )

    job_id: Mapped[UUID] = mapped_column(ForeignKey("warm_starts.job_id"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    candidate_key: Mapped[str] = mapped_column(String(64))
    sketch: Mapped[str] = mapped_column(String(255))
    trace: Mapped[dict[str, Any]] = mapped_column(JSON)
    distance: Mapped[float]
    source_job_id: Mapped[UUID]
    source_number: Mapped[int] = mapped_column(Integer)
    source_rank: Mapped[int] = mapped_column(Integer)


@dataclass(frozen=True)
class WarmStartOutcome:
    """What became of a relative's best schedule: `loss` is 1 - the task's best time / its time."""

    distance: float
    loss: float


def find(session: Session, job_id: UUID) -> WarmStartRow | None:
    """Return what a job began with, none if it did not begin yet."""
    return session.get(WarmStartRow, job_id)


def candidates(session: Session, job_id: UUID) -> list[WarmCandidateRow]:
    """Return the candidates that a job began with, in their order."""
    query = select(WarmCandidateRow).where(WarmCandidateRow.job_id == job_id)
    return list(session.scalars(query.order_by(WarmCandidateRow.position)))


def keep(
    session: Session,
    job_id: UUID,
    *,
    cost_model_id: int | None = None,
    candidates: Sequence[WarmCandidateRow] = (),
) -> WarmStartRow:
    """Note what a job begins with; by default nothing."""
    row = WarmStartRow(job_id=job_id, cost_model_id=cost_model_id, created_at=utc_now())
    session.add(row)
    session.flush()
    session.add_all(candidates)
    session.flush()
    return row


def outcomes(
    session: Session, label: str, operator_key: str | None = None
) -> list[WarmStartOutcome]:
    """Return what became of relatives' best schedules on one kind of target.

    Args:
        operator_key: Of which operator; by default of all.
    """
    query = (
        select(WarmCandidateRow.distance, TrialRow.best_secs, BestScheduleRow.run_secs)
        .join(
            TrialRow,
            (TrialRow.job_id == WarmCandidateRow.job_id)
            & (TrialRow.candidate_key == WarmCandidateRow.candidate_key),
        )
        .join(JobRow, JobRow.id == WarmCandidateRow.job_id)
        .join(TargetRow, TargetRow.name == JobRow.target)
        .join(
            BestScheduleRow,
            (BestScheduleRow.workload_key == JobRow.workload_key)
            & (BestScheduleRow.target == JobRow.target),
        )
        .where(WarmCandidateRow.source_rank == 0, TargetRow.label == label)
        .order_by(JobRow.created_at.desc(), WarmCandidateRow.position)
        .limit(MAX_OUTCOMES)
    )
    if operator_key is not None:
        query = query.join(WorkloadRow, WorkloadRow.key == JobRow.workload_key).where(
            WorkloadRow.operator_key == operator_key
        )
    return [
        # The best was measured more than once, so that its time may be the longer one.
        WarmStartOutcome(distance, 1.0 if secs is None else max(0.0, 1 - best_secs / secs))
        for distance, secs, best_secs in session.execute(query)
    ]
