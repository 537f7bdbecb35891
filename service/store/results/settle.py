"""Find the best schedule of a task among all trials of its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.results.finals import FinalRow
from service.store.results.toolchains import is_old, measured_today
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import JobState
from service.wire.times import RunTime, holds_against
from tuner.finish.contest import Outcome

_ENDED = [state for state in JobState if state.is_final]


@dataclass(frozen=True)
class _Best:
    job_id: UUID
    trial_number: int
    run_secs: float
    low_secs: float | None
    high_secs: float | None
    updated_at: datetime
    provisional_secs: float  # the shortest sample of its trial

    @property
    def time(self) -> RunTime:
        if self.low_secs is None or self.high_secs is None:
            return RunTime(self.run_secs)
        return RunTime(self.run_secs, (self.low_secs, self.high_secs), self.provisional_secs)


def settle(session: Session, workload_key: str, target: str) -> bool:
    """Make the fastest trial of a task its best schedule; return whether it changed.

    A confirmed time replaces the provisional ones of its job. A job that is open, or whose
    finalists could not be compared, has only provisional times. Its trial wins if its shortest
    sample is far shorter than that of the confirmed trial: see `holds_against`. Times of an older
    code generator count until the current one has measured the fastest of them again.
    """
    task = (workload_key, target)
    fastest = [_fastest(session, *task, is_today=True), _fastest(session, *task, is_today=False)]
    if fastest[1] is not None and _is_confirmed(session, *task, fastest[1]):
        fastest.pop()
    best = _better(*fastest)
    row = session.get(BestScheduleRow, (workload_key, target), with_for_update=True)
    if best is None:
        if row is not None:
            session.delete(row)
            session.flush()
        return False
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
        if name != "provisional_secs":
            setattr(row, name, value)
    session.flush()
    return True


def _fastest(session: Session, workload_key: str, target: str, *, is_today: bool) -> _Best | None:
    """Return the fastest trial that the current code generator, or older ones, measured.

    An older trial does not count if the current generator makes a wrong kernel of its candidate.
    """
    correct = ~measured_today(workload_key, target, is_wrong=True)

    def of_time(made_by: InstrumentedAttribute[str]) -> ColumnElement[bool]:
        return ~is_old(made_by) if is_today else is_old(made_by) & correct

    return _better(
        _kept(session, workload_key, target, of_time(FinalRow.toolchain)),
        _timed(session, workload_key, target, of_time(TrialRow.toolchain)),
    )


def _better(first: _Best | None, second: _Best | None = None) -> _Best | None:
    """Return the better of two; the first if they are equal."""
    if first is None or second is None:
        return first or second
    return first if holds_against(first.time, second.time) else second


def _is_confirmed(session: Session, workload_key: str, target: str, best: _Best) -> bool:
    """Return whether the current code generator has measured a candidate again."""
    query = select(TrialRow.number).where(
        TrialRow.job_id == best.job_id,
        TrialRow.number == best.trial_number,
        measured_today(workload_key, target, is_wrong=False),
    )
    return session.scalars(query).first() is not None


def _kept(
    session: Session, workload_key: str, target: str, of_time: ColumnElement[bool]
) -> _Best | None:
    """Return the fastest trial that the last final comparison of a job kept."""
    final = session.scalars(
        select(FinalRow)
        .join(JobRow, (JobRow.id == FinalRow.job_id) & (JobRow.num_finishes == FinalRow.finish))
        .join(TrialRow, (TrialRow.job_id == FinalRow.job_id) & (TrialRow.number == FinalRow.number))
        .where(
            JobRow.workload_key == workload_key,
            JobRow.target == target,
            FinalRow.outcome == Outcome.KEPT,
            of_time,
        )
        .order_by(FinalRow.run_secs, FinalRow.created_at, FinalRow.job_id, FinalRow.number)
        .limit(1)
    ).first()
    if final is None or final.run_secs is None:
        return None
    provisional = trials.provisional_secs(session, final.job_id, final.number)
    return _Best(
        final.job_id,
        final.number,
        final.run_secs,
        final.low_secs,
        final.high_secs,
        final.created_at,
        final.run_secs if provisional is None else provisional,
    )


def _timed(
    session: Session, workload_key: str, target: str, of_time: ColumnElement[bool]
) -> _Best | None:
    """Return the fastest trial of jobs that are open, or whose last final comparison kept none."""
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
            of_time,
        )
        .order_by(TrialRow.best_secs, JobRow.created_at, TrialRow.job_id, TrialRow.number)
        .limit(1)
    ).first()
    if trial is None or trial.best_secs is None:
        return None
    secs = trial.best_secs
    return _Best(trial.job_id, trial.number, secs, None, None, trial.created_at, secs)
