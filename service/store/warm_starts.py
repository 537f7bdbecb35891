"""Warm starts: the initial model and candidates of each job, which a resumed job uses again."""

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
from service.store.targets import TargetRow, has_timing_label
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow

MAX_OUTCOMES = 1000
"""Number of newest outcomes to read."""


class WarmStartRow(Base):
    """The cost model that a job started with; null for an untrained one."""

    __tablename__ = "warm_starts"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    cost_model_id: Mapped[int | None] = mapped_column(ForeignKey(CostModelRow.id))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class WarmCandidateRow(Base):
    """A candidate that a job started with, made from a trial of a related task.

    `distance` is that of the related task, and `source_rank` the rank of its trial, 0 for the
    fastest.
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
    """The outcome of a related task's best schedule; `loss` is 1 - the best time / its time."""

    distance: float
    loss: float


def find(session: Session, job_id: UUID) -> WarmStartRow | None:
    """Return the warm start of a job; None if the job has not started."""
    return session.get(WarmStartRow, job_id)


def candidates(session: Session, job_id: UUID) -> list[WarmCandidateRow]:
    """Return the candidates that a job started with, in order."""
    query = select(WarmCandidateRow).where(WarmCandidateRow.job_id == job_id)
    return list(session.scalars(query.order_by(WarmCandidateRow.position)))


def keep(
    session: Session,
    job_id: UUID,
    *,
    cost_model_id: int | None = None,
    candidates: Sequence[WarmCandidateRow] = (),
) -> WarmStartRow:
    """Store the warm start of a job; by default it is empty."""
    row = WarmStartRow(job_id=job_id, cost_model_id=cost_model_id, created_at=utc_now())
    session.add(row)
    session.flush()
    session.add_all(candidates)
    session.flush()
    return row


def outcomes(
    session: Session, label: str, operator_key: str | None = None
) -> list[WarmStartOutcome]:
    """Return the outcomes of related tasks' best schedules on one kind of target.

    Args:
        operator_key: The operator; by default all.
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
        .where(WarmCandidateRow.source_rank == 0, has_timing_label(label))
        .order_by(JobRow.created_at.desc(), WarmCandidateRow.position)
        .limit(MAX_OUTCOMES)
    )
    if operator_key is not None:
        query = query.join(WorkloadRow, WorkloadRow.key == JobRow.workload_key).where(
            WorkloadRow.operator_key == operator_key
        )
    return [
        # The best schedule was measured more than once, so its time may be the longer one.
        WarmStartOutcome(distance, 1.0 if secs is None else max(0.0, 1 - best_secs / secs))
        for distance, secs, best_secs in session.execute(query)
    ]
