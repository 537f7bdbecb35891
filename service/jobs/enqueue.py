"""Queue a job for a requested schedule that no job has searched for. Independent of HTTP.

A deployed program requests the schedules of its workloads, and continues without a missing one
while the job searches for it. A task has one such job, which a repeated request returns. A job that
failed or was cancelled is not repeated automatically. A schedule from an older code generator gets
one job that measures it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.common.caller import Caller
from service.intake.request_validation import parse_target, read_workload
from service.jobs.jobs import Queue
from service.store.database.database import Database
from service.store.jobs import jobs, quotas
from service.store.jobs.jobs import JobRow
from service.store.results import best_schedules, finals, toolchains
from service.wire.models import JobRead, JobState
from service.wire.requests import ScheduleQuery, SearchOptions

TRIALS = 200
"""Trial limit of a job that a look-up enqueues: the default of `loopwright tune`."""
PRIORITY = -1
"""Lower than the default priority of submitted jobs, for which people wait."""


@dataclass(frozen=True)
class Enqueued:
    """The job that searches, or has searched, for the schedule of a task."""

    job: JobRead
    is_new: bool

    def __str__(self) -> str:
        job = f"job {self.job.id}"
        if self.is_new:
            return f"{job} was queued"
        match self.job.state:
            case JobState.QUEUED:
                return f"{job} is already queued"
            case JobState.RUNNING:
                return f"{job} is running"
            case JobState.CANCELLED:
                return f"{job} was cancelled: resume it"
            case _:
                reason = self.job.error or "it ended without a correct trial"
                return f"{job} found no schedule: {reason}"


def enqueue(database: Database, query: ScheduleQuery, *, caller: Caller) -> Enqueued | None:
    """Return the job for a request; None if its exact schedule is stored.

    Args:
        caller: The owner of a new job.

    Raises:
        UnprocessableError: If the workload or the target is invalid, or if no worker serves that
            kind of target.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    workload = read_workload(query.workload, to_tune=True)
    name = parse_target(query.target).name
    with database.read() as session:
        is_asked_for, existing = _existing(session, workload.key, name)
    if is_asked_for:
        return existing
    with database.write() as session:
        is_asked_for, existing = _existing(session, workload.key, name)
        if is_asked_for:  # a concurrent request was faster
            return existing
        priority = min(PRIORITY, caller.quota.max_priority or PRIORITY)
        options = SearchOptions(target=name, max_trials=TRIALS, priority=priority)
        with quotas.held(session, caller):
            row = Queue(session, options, caller).add(workload)
        return Enqueued(jobs.read(row), is_new=True)


def _existing(session: Session, workload_key: str, target: str) -> tuple[bool, Enqueued | None]:
    """Return whether no job is needed, and the job that searches for the schedule, or None."""
    best = best_schedules.find(session, workload_key, target)
    if best is None:
        newest = _newest(session, workload_key, target)
        return newest is not None, newest
    if not toolchains.is_outdated(finals.toolchain_of(session, best.trial)):
        return True, None
    newest = _newest(session, workload_key, target)
    if newest is None or not newest.job.state.is_final:
        return newest is not None, newest
    return toolchains.has_current(session, newest.job.id), None


def _newest(session: Session, workload_key: str, target: str) -> Enqueued | None:
    """Return the newest job of a task."""
    query = (
        select(JobRow)
        .where(JobRow.workload_key == workload_key, JobRow.target == target)
        .order_by(JobRow.created_at.desc(), JobRow.id)
        .limit(1)
    )
    row = session.scalars(query).first()
    return None if row is None else Enqueued(jobs.read(row), is_new=False)
