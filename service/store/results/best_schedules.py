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
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime, utc_now
from service.store.database.single_reads import SingleReads
from service.store.jobs import baselines
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.jobs import JobRow
from service.store.results import toolchains
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import BaselineRead
from service.wire.times import RunTime, holds_against


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
        provisional = self.run_secs
        if self.interval is not None:
            trial_secs = trials.provisional_secs(session, self.job_id, self.trial_number)
            provisional = self.run_secs if trial_secs is None else trial_secs
        return RunTime(self.run_secs, self.interval, provisional)


def offer(session: Session, job: JobRow, trial: TrialRow) -> None:
    """Make `trial` the best of its task if it is faster than the current best.

    A time of the current code generator replaces that of an older one for the same candidate. A
    sample replaces a confirmed best only if it is far shorter: see `holds_against`.
    """
    if trial.best_secs is None:
        return
    row = session.get(BestScheduleRow, (job.workload_key, job.target), with_for_update=True)
    if row is None:
        row = BestScheduleRow(workload_key=job.workload_key, target=job.target)
        session.add(row)
    elif not _is_measured_again(session, row, trial) and holds_against(
        row.time(session), RunTime(trial.best_secs)
    ):
        return
    row.job_id, row.trial_number = trial.job_id, trial.number
    row.run_secs, row.low_secs, row.high_secs = trial.best_secs, None, None
    row.updated_at = utc_now()
    session.flush()  # the next offer reads the row again


def _is_measured_again(session: Session, best: BestScheduleRow, trial: TrialRow) -> bool:
    if toolchains.is_outdated(trial.toolchain):
        return False
    # Without its trace, which is long: this is read for each trial.
    query = select(TrialRow.candidate_key, TrialRow.toolchain).where(
        TrialRow.job_id == best.job_id, TrialRow.number == best.trial_number
    )
    key, toolchain = session.execute(query).one()
    return bool(key == trial.candidate_key) and toolchains.is_outdated(toolchain)


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


def stamp(session: Session, task: TaskKey) -> Stamp | None:
    """Return the stamp of a task's best schedule, or None."""
    return _stamps_in(session.execute(_STAMPS, {"keys": [task[0]]})).get(task)


def stamps(reads: SingleReads, tasks: Collection[TaskKey]) -> dict[TaskKey, Stamp]:
    """Return the stamps of the best schedules of tasks, and of other targets of their workloads."""
    keys = sorted({key for key, _ in tasks})
    # Few lengths make few texts of the statement, each of which the server prepares once.
    keys += keys[-1:] * ((1 << (len(keys) - 1).bit_length()) - len(keys))
    return _stamps_in(reads.rows(_STAMPS, {"keys": keys}))


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


def find(session: Session, workload_key: str, target: str) -> BestSchedule | None:
    """Return the best schedule of a task; None if nothing was measured."""
    row = session.get(BestScheduleRow, (workload_key, target))
    if row is None:
        return None
    trial = session.get_one(TrialRow, (row.job_id, row.trial_number))
    return BestSchedule(trial, session.get_one(JobRow, row.job_id), row)
