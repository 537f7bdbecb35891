"""Finals: the results of a job's final comparison of its best trials, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    ForeignKeyConstraint,
    Integer,
    ScalarSelect,
    String,
    Text,
    func,
    select,
    tuple_,
)
from sqlalchemy.orm import Mapped, Session, column_property, mapped_column, undefer

from compiler.runtime.measurement import ErrorKind
from service.store.database.base import Base, UtcDateTime, enum_column, utc_now
from service.store.jobs import events
from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.results.toolchains import is_old
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import EventKind, FinalRead
from service.wire.times import RunTime, holds_against
from tuner.finish.contest import Finalist, Finish, Outcome
from tuner.finish.space_distance import SpaceDistance
from tuner.finish.whole_space import WholeSpace


class FinalRow(Base):
    """A finalist, a trial that was measured again; `rounds` has the samples in seconds.

    A resumed job has several final comparisons, numbered from 1; the last one is valid. The time
    and its interval are null for a finalist that failed, which has an error.
    """

    __tablename__ = "finals"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "number"], ["trials.job_id", "trials.number"]),
    )

    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    finish: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    outcome: Mapped[Outcome] = mapped_column(enum_column(Outcome))
    run_secs: Mapped[float | None]
    low_secs: Mapped[float | None]
    high_secs: Mapped[float | None]
    # Deferred: kilobytes, which lists of jobs do not need.
    rounds: Mapped[list[list[float]]] = mapped_column(JSON, deferred=True)
    error: Mapped[ErrorKind | None] = mapped_column(enum_column(ErrorKind))
    message: Mapped[str] = mapped_column(Text)
    workers: Mapped[list[str]] = mapped_column(JSON)
    toolchain: Mapped[str] = mapped_column(String(255))
    num_rounds: Mapped[int | None] = column_property(func.json_array_length(rounds))
    # The shortest sample of the trial itself, in the search.
    provisional_secs: Mapped[float | None] = column_property(
        select(TrialRow.best_secs)
        .where(TrialRow.job_id == job_id, TrialRow.number == number)
        .correlate_except(TrialRow)
        .scalar_subquery()
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds of `run_secs`; None for a failure."""
        if self.low_secs is None or self.high_secs is None:
            return None
        return self.low_secs, self.high_secs


_is_last = (JobRow.id == FinalRow.job_id) & (JobRow.num_finishes == FinalRow.finish)


def keep(
    session: Session,
    job: JobRow,
    finish: Finish,
    space: WholeSpace | SpaceDistance | None = None,
) -> None:
    """Store a final comparison, and update the job's best time and the task's best schedule.

    Args:
        space: What is claimed of the kept trial among the schedules of its space.
    """
    job.num_finishes += 1
    job.space = None if space is None else space.to_json()
    for finalist in finish.finalists:
        session.add(_row(job, finalist))
    session.flush()
    payload: dict[str, Any] = {"is_tied": finish.is_tied, "number": None}
    if (winner := finish.kept) is not None:
        job.best_secs = winner.run_secs
        job.best_low_secs, job.best_high_secs = winner.interval
        payload |= {
            "number": winner.trial.number,
            "best_secs": winner.run_secs,
            "best_interval": list(winner.interval),
        }
    _settle(session, job)
    events.append(session, job.id, EventKind.FINISH, payload)


def of_job(session: Session, job_id: UUID) -> list[FinalRow]:
    """Return the finalists of a job's last final comparison by their trials' numbers."""
    query = (
        select(FinalRow)
        .join(JobRow, _is_last)
        .where(FinalRow.job_id == job_id)
        .order_by(FinalRow.number)
        .options(undefer(FinalRow.rounds))
    )
    return list(session.scalars(query))


def measured_by() -> ScalarSelect[str]:
    """Return the toolchain of the last measurement of a selected `TrialRow`."""
    last = (
        select(FinalRow.toolchain)
        .where(FinalRow.job_id == TrialRow.job_id, FinalRow.number == TrialRow.number)
        .order_by(FinalRow.finish.desc())
        .limit(1)
        .correlate(TrialRow)
        .scalar_subquery()
    )
    return select(func.coalesce(last, TrialRow.toolchain)).correlate(TrialRow).scalar_subquery()


def toolchain_of(session: Session, trial: TrialRow) -> str:
    """Return the toolchain of the last measurement of one trial."""
    return toolchains_of(session, [trial])[trial.job_id, trial.number]


def toolchains_of(session: Session, some: Sequence[TrialRow]) -> dict[tuple[UUID, int], str]:
    """Return the toolchains of the last measurements of trials, by their jobs and numbers."""
    keys = [(trial.job_id, trial.number) for trial in some]
    query = select(TrialRow.job_id, TrialRow.number, measured_by())
    rows = session.execute(query.where(tuple_(TrialRow.job_id, TrialRow.number).in_(keys)))
    return {(row[0], row[1]): row[2] for row in rows}


def of_trials(session: Session, job_id: UUID, numbers: Sequence[int]) -> dict[int, FinalRow]:
    """Return the finalists among some trials in a job's last final comparison, by number."""
    query = (
        select(FinalRow)
        .join(JobRow, _is_last)
        .where(FinalRow.job_id == job_id, FinalRow.number.in_(numbers))
    )
    return {row.number: row for row in session.scalars(query)}


def read(row: FinalRow | None) -> FinalRead | None:
    """Return a final as the API shows it."""
    return None if row is None else FinalRead.model_validate(row, from_attributes=True)


def kept_numbers(session: Session, job_id: UUID) -> list[int]:
    """Return the trials that final comparisons of a job kept, which the next one measures again."""
    query = select(FinalRow.number).where(
        FinalRow.job_id == job_id, FinalRow.outcome == Outcome.KEPT
    )
    return list(session.scalars(query.order_by(FinalRow.finish)))


def _settle(session: Session, job: JobRow) -> None:
    """Make the fastest kept finalist of all jobs of the task its best schedule.

    It replaces a provisional best, except that of another job, which has no final comparison yet.
    """
    final = _best_of_task(session, job)
    if final is None or final.run_secs is None:
        return
    best = session.get_one(BestScheduleRow, (job.workload_key, job.target), with_for_update=True)
    challenger = RunTime(
        final.run_secs, final.interval, trials.provisional_secs(session, final.job_id, final.number)
    )
    if best.job_id != job.id and holds_against(best.time(session), challenger):
        return
    best.job_id, best.trial_number = final.job_id, final.number
    best.run_secs, best.low_secs, best.high_secs = final.run_secs, final.low_secs, final.high_secs
    best.updated_at = utc_now()


def _best_of_task(session: Session, job: JobRow) -> FinalRow | None:
    """Return the fastest finalist that any job of the task kept."""
    query = (
        select(FinalRow)
        .join(JobRow, _is_last)
        .where(
            JobRow.workload_key == job.workload_key,
            JobRow.target == job.target,
            FinalRow.outcome == Outcome.KEPT,
        )
        # Times of an older code generator cannot be compared with those of this comparison.
        .order_by(is_old(FinalRow.toolchain), FinalRow.run_secs, FinalRow.created_at)
        .limit(1)
    )
    return session.scalars(query).first()


def _row(job: JobRow, finalist: Finalist) -> FinalRow:
    last = finalist.rounds[-1]
    has_run = math.isfinite(finalist.run_secs)
    low, high = finalist.interval
    return FinalRow(
        job_id=job.id,
        finish=job.num_finishes,
        number=finalist.trial.number,
        outcome=finalist.outcome,
        run_secs=finalist.run_secs if has_run else None,
        low_secs=low if has_run else None,
        high_secs=high if has_run else None,
        rounds=[list(m.run_secs) for m in finalist.rounds if m.ok],
        error=last.error,
        message=last.message.replace("\0", "\\0"),
        workers=sorted({m.worker for m in finalist.rounds}),
        toolchain=last.toolchain,
        created_at=utc_now(),
    )
