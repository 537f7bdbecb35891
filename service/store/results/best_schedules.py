"""Best schedules: for each task the fastest trial of all its jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    Row,
    String,
    bindparam,
    func,
    select,
    tuple_,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime
from service.store.database.bulk import padded
from service.store.database.single_reads import SingleReads
from service.store.jobs import baselines
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.jobs import JobRow
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import BaselineRead
from service.wire.times import RunTime


class BestScheduleRow(Base):
    """The trial to use for a workload on a target; it changes in the trial's transaction.

    `run_secs` is provisional, the shortest sample of its trial, until a final comparison confirms
    it. Then it has the bounds of a 95% interval.
    """

    __tablename__ = "best_schedules"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "trial_number"], ["trials.job_id", "trials.number"]),
    )

    workload_key: Mapped[str] = mapped_column(ForeignKey("workloads.key"), primary_key=True)
    target: Mapped[str] = mapped_column(String(1000), ForeignKey("targets.name"), primary_key=True)
    job_id: Mapped[UUID]
    trial_number: Mapped[int] = mapped_column(Integer)
    run_secs: Mapped[float]
    low_secs: Mapped[float | None]
    high_secs: Mapped[float | None]
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds of `run_secs`; None before a final comparison."""
        return (
            None
            if self.low_secs is None or self.high_secs is None
            else (self.low_secs, self.high_secs)
        )

    def time(self, session: Session) -> RunTime:
        """Return the time of its trial, with the provisional one."""
        if self.interval is None:
            return self.time_with(self.run_secs)
        return self.time_with(trials.provisional_secs(session, self.job_id, self.trial_number))

    def time_with(self, provisional_secs: float | None) -> RunTime:
        """Return the time of its trial, from the shortest sample of that."""
        if self.interval is None or provisional_secs is None:
            return RunTime(self.run_secs, self.interval, self.run_secs)
        return RunTime(self.run_secs, self.interval, provisional_secs)


class BestSchedule(NamedTuple):
    """The best schedule of a task, the trial that found it, and the job of that trial."""

    trial: TrialRow
    job: JobRow
    row: BestScheduleRow

    @property
    def baseline(self) -> BaselineRead | None:
        """The fastest library that was timed beside this trial."""
        return baseline_of(self.row, self.job)


def baseline_of(best: BestScheduleRow, job: JobRow) -> BaselineRead | None:
    """Return the fastest library that was timed beside a best schedule's trial."""
    return baselines.fastest(row for row in job.baselines if row.trial_number == best.trial_number)


class Stamp(NamedTuple):
    """A value that changes with a best schedule and with its times."""

    updated_at: datetime
    default_secs: float | None
    baseline_at: datetime | None


TaskKey: TypeAlias = tuple[str, str]
"""The key of a workload, and the name of a target."""


def stamps(reads: SingleReads, tasks: Collection[TaskKey]) -> dict[TaskKey, Stamp]:
    """Return the stamps of the best schedules of tasks, and of other targets of their workloads."""
    keys = sorted({key for key, _ in tasks})
    return _stamps_in(reads.rows(_STAMPS, {"keys": padded(keys)}))


def _stamps_in(
    rows: Iterable[Row[str, str, datetime, float | None, datetime]],
) -> dict[TaskKey, Stamp]:
    return {(row[0], row[1]): Stamp(row[2], row[3], row[4]) for row in rows}


_STAMPS = (
    select(
        BestScheduleRow.workload_key,
        BestScheduleRow.target,
        BestScheduleRow.updated_at,
        JobRow.default_secs,
        select(func.max(BaselineRow.created_at))
        .where(BaselineRow.job_id == BestScheduleRow.job_id)
        .scalar_subquery(),
    )
    .join(JobRow, JobRow.id == BestScheduleRow.job_id)
    .where(BestScheduleRow.workload_key.in_(bindparam("keys", expanding=True)))
)


def newest_task(session: Session) -> TaskKey | None:
    """Return the task whose best schedule changed last; None without any."""
    query = select(BestScheduleRow.workload_key, BestScheduleRow.target)
    row = session.execute(query.order_by(BestScheduleRow.updated_at.desc()).limit(1)).first()
    return None if row is None else (row.workload_key, row.target)


def find(session: Session, workload_key: str, target: str) -> BestSchedule | None:
    """Return the best schedule of a task; None if nothing was measured."""
    return next(iter(find_all(session, [(workload_key, target)])), None)


def find_all(session: Session, tasks: Collection[TaskKey]) -> list[BestSchedule]:
    """Return the best schedules of those tasks that have one, by a few statements for all."""
    query = (
        select(TrialRow, JobRow, BestScheduleRow)
        .join(
            BestScheduleRow,
            (BestScheduleRow.job_id == TrialRow.job_id)
            & (BestScheduleRow.trial_number == TrialRow.number),
        )
        .join(JobRow, JobRow.id == TrialRow.job_id)
        .where(tuple_(BestScheduleRow.workload_key, BestScheduleRow.target).in_(tasks))
    )
    return [BestSchedule(*row) for row in session.execute(query)]
