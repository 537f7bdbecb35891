"""The best schedule of a task, found from all that its jobs measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from loopwright.models import JobState
from service.store.best_schedules import BestScheduleRow
from service.store.finals import FinalRow
from service.store.jobs import JobRow
from service.store.trials import TrialRow
from tuner.finish.finish import Outcome

_ENDED = [state for state in JobState if state.is_final]


@dataclass(frozen=True)
class _Best:
    job_id: UUID
    trial_number: int
    run_secs: float
    low_secs: float | None
    high_secs: float | None
    updated_at: datetime


def settle(session: Session, workload_key: str, target: str) -> bool:
    """Make the fastest of a task its best schedule; tell whether it is another one now.

    A time from the finish of a job counts rather than the single timings of its trials. Where there
    is none, because the job goes on or its best could not be compared, these have to do.
    """
    found = [
        best
        for best in (_kept(session, workload_key, target), _timed(session, workload_key, target))
        if best is not None
    ]
    if not found:
        return False
    best = min(found, key=lambda one: one.run_secs)  # the kept one of two that are equal
    row = session.get(BestScheduleRow, (workload_key, target), with_for_update=True)
    is_same = row is not None and (row.job_id, row.trial_number, row.run_secs) == (
        best.job_id,
        best.trial_number,
        best.run_secs,
    )
    if is_same:
        return False
    if row is None:
        row = BestScheduleRow(workload_key=workload_key, target=target)
        session.add(row)
    for name, value in vars(best).items():
        setattr(row, name, value)
    session.flush()
    return True


def _kept(session: Session, workload_key: str, target: str) -> _Best | None:
    """Return the fastest that the last finish of a job kept."""
    final = session.scalars(
        select(FinalRow)
        .join(JobRow, (JobRow.id == FinalRow.job_id) & (JobRow.num_finishes == FinalRow.finish))
        .where(
            JobRow.workload_key == workload_key,
            JobRow.target == target,
            FinalRow.outcome == Outcome.KEPT,
        )
        .order_by(FinalRow.run_secs, FinalRow.created_at, FinalRow.job_id, FinalRow.number)
        .limit(1)
    ).first()
    if final is None or final.run_secs is None:
        return None
    return _Best(
        final.job_id,
        final.number,
        final.run_secs,
        final.low_secs,
        final.high_secs,
        final.created_at,
    )


def _timed(session: Session, workload_key: str, target: str) -> _Best | None:
    """Return the fastest trial of the jobs whose last finish kept none, or that go on."""
    of_last = (FinalRow.job_id == JobRow.id) & (FinalRow.finish == JobRow.num_finishes)
    has_kept = exists().where(of_last, FinalRow.outcome == Outcome.KEPT)
    has_failed = exists().where(
        of_last, FinalRow.number == TrialRow.number, FinalRow.outcome == Outcome.FAILED
    )
    trial = session.scalars(
        select(TrialRow)
        .join(JobRow, JobRow.id == TrialRow.job_id)
        .where(
            JobRow.workload_key == workload_key,
            JobRow.target == target,
            TrialRow.best_secs.is_not(None),
            ~(has_kept & JobRow.state.in_(_ENDED)),
            ~has_failed,
        )
        .order_by(TrialRow.best_secs, JobRow.created_at, TrialRow.job_id, TrialRow.number)
        .limit(1)
    ).first()
    if trial is None or trial.best_secs is None:
        return None
    return _Best(trial.job_id, trial.number, trial.best_secs, None, None, trial.created_at)
