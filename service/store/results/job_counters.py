"""What trials change, as plain values: counters of jobs, and the best schedules of their tasks.

One statement reads them for all jobs of a transaction. As objects of the ORM, these rows took a
third of the processor time of storing trials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, null, select
from sqlalchemy.orm import Session

from service.store.database.base import utc_now
from service.store.database.bulk import padded, update_rows
from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow, TaskKey
from service.store.results.incumbents import Incumbent, Incumbents
from service.store.trials.trials import TrialRow
from service.wire.models import JobState
from service.wire.times import Interval, kind_of
from tuner.loop.progress import add_point
from tuner.trial import MeasuredTrial


@dataclass
class JobCounters:
    """The columns of a job's row that its trials read or change; see `JobRow`."""

    id: UUID
    state: JobState
    lease_owner: str | None
    workload_key: str
    target: str
    fruitless_claims: int
    active_secs: float
    active_at: datetime | None
    progress_at: datetime | None
    num_measured: int
    best_secs: float | None
    best_low_secs: float | None
    best_high_secs: float | None
    default_secs: float | None
    progress: list[list[float]] | None
    is_improved: bool = False

    @property
    def task(self) -> TaskKey:
        """The task of the job."""
        return self.workload_key, self.target

    @property
    def interval(self) -> Interval | None:
        """The 95% interval of `best_secs`; None before a final comparison."""
        if self.best_low_secs is None or self.best_high_secs is None:
            return None
        return self.best_low_secs, self.best_high_secs

    @property
    def provisional_secs(self) -> float | None:
        """The shortest sample of all its trials."""
        return self.progress[-1][1] if self.progress else self.best_secs

    def count_time(self, now: datetime) -> None:
        """Add the time since the last count to the run time, and note that it makes progress."""
        if self.active_at is not None:
            self.active_secs += max(0.0, (now - self.active_at).total_seconds())
        self.active_at = self.progress_at = now

    def count(self, trial: MeasuredTrial) -> None:
        """Count a new trial."""
        self.num_measured += 1
        if not trial.measurement.ok:
            return
        if trial.number == 0:
            self.default_secs = trial.best_secs
        if self.provisional_secs is None or trial.best_secs < self.provisional_secs:
            points = add_point(self.progress or [], self.num_measured, trial.best_secs)
            self.progress, self.is_improved = list(map(list, points)), True
            # A confirmed time is a median: only the next final comparison replaces it, not a
            # sample.
            if self.interval is None:
                self.best_secs = trial.best_secs

    def payload(self) -> dict[str, Any]:
        """Return the payload of the event that shows them."""
        return {
            "num_measured": self.num_measured,
            "best_secs": self.best_secs,
            "best_kind": kind_of(self.best_secs, self.interval, self.target),
            "provisional_secs": self.provisional_secs,
            "default_secs": self.default_secs,
        }


_READ = tuple(field.name for field in fields(JobCounters) if field.name != "is_improved")
_COUNTED = ("id", "active_secs", "active_at", "progress_at", "num_measured", "default_secs")
"""The columns that change with each trial."""
_IMPROVED = (*_COUNTED, "best_secs", "progress")
"""The same if the best time changed, which is seldom; `progress` is long."""


@dataclass(frozen=True)
class Read:
    """Jobs that exist, the best schedules of their tasks, and the time of `shared_now`."""

    counters: Mapping[UUID, JobCounters]
    incumbents: Incumbents
    at: datetime


def read(session: Session, job_ids: Collection[UUID]) -> Read:
    """Read what trials of jobs change, in a transaction that writes; lock the rows of the jobs.

    The rows of best schedules need no lock, as one transaction writes at a time.
    """
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    counters: dict[UUID, JobCounters] = {}
    best: dict[TaskKey, Incumbent] = {}
    at: datetime | None = None
    num = len(_READ)
    rows: Any = session.connection().execute(_query(is_postgresql), {"ids": padded(job_ids)})
    for row in rows:
        job = counters[row[0]] = JobCounters(*row[:num])
        at = row[num]
        if row[num + 1] is not None:
            best[job.task] = Incumbent(*row[num + 1 :])
    return Read(counters, Incumbents(best), at or utc_now())


def write(session: Session, jobs: Collection[JobCounters]) -> None:
    """Store the changed counters of jobs; each row is written once."""
    table: Any = JobRow.__table__
    for is_improved, names in ((False, _COUNTED), (True, _IMPROVED)):
        if rows := [_columns(job, names) for job in jobs if job.is_improved is is_improved]:
            update_rows(session, table, "id", rows)


def _columns(job: JobCounters, names: Collection[str]) -> dict[str, Any]:
    return {name: getattr(job, name) for name in names}


@cache
def _query(is_postgresql: bool) -> Any:
    """Return the statement of `read`: a job, the time, then the fields of an `Incumbent`."""
    best, job, trial = BestScheduleRow, JobRow, TrialRow
    # Not the ORM's attributes: a statement of columns gives rows of plain values.
    columns = [JobRow.__table__.c[name] for name in _READ]
    return (
        select(
            *columns,
            func.clock_timestamp() if is_postgresql else null(),
            *(best.job_id, best.trial_number, best.run_secs, best.low_secs, best.high_secs),
            *(trial.candidate_key, trial.toolchain, trial.best_secs),
        )
        .select_from(job)
        .outerjoin(best, (best.workload_key == job.workload_key) & (best.target == job.target))
        .outerjoin(trial, (trial.job_id == best.job_id) & (trial.number == best.trial_number))
        .where(job.id.in_(bindparam("ids", expanding=True)))
        .with_for_update(of=job)
    )
