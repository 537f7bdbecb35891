"""Controls: the changes of users to existing jobs.

    queued  --cancel--> cancelled          running --cancel, stop--> asked for; its owner ends it
    queued  --stop--> cancelled, or, with trials, asked for: who claims it next finishes it
    cancelled, failed, stopped --resume--> queued
    succeeded, cancelled, failed --change of a budget that leaves something to do--> queued

A change that contradicts the current state is refused (`ServiceConflictError`). A change that is
already done has no effect, so that a request may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from service.common.errors import ServiceConflictError
from service.store.database.base import utc_now
from service.store.database.bulk import padded
from service.store.database.single_reads import SingleReads
from service.store.jobs import blame, groups, jobs
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from tuner.loop.budget import Budget, StopReason
from tuner.loop.search_result import SearchResult

BUDGETS = frozenset({"max_trials", "max_secs", "plateau"})
"""The limits that a request may change."""


@dataclass(frozen=True)
class JobControls:
    """The current controls of a job.

    `shared_trials` is the trial limit of its group, or its own.
    """

    is_cancelled: bool
    is_stopped: bool
    budget: Budget
    shared_trials: int
    owner: str = ""
    priority: int = 0


_OF_JOBS: Any = (
    select(
        *(JobRow.id, JobRow.cancel_requested, JobRow.stop_requested),
        *(JobRow.max_trials, JobRow.max_secs, JobRow.plateau, JobRow.plateau_from),
        func.coalesce(GroupRow.max_trials, JobRow.max_trials).label("shared_trials"),
        *(JobRow.owner, JobRow.priority),
    )
    .outerjoin(GroupRow, GroupRow.id == JobRow.group_id)
    .where(JobRow.id.in_(bindparam("ids", expanding=True)))
)


def of_jobs(reads: SingleReads, job_ids: Collection[UUID]) -> dict[UUID, JobControls]:
    """Return the current controls of jobs."""
    rows: Any = reads.rows(_OF_JOBS, {"ids": padded(job_ids)})
    return {
        row.id: JobControls(
            is_cancelled=row.cancel_requested,
            is_stopped=row.stop_requested,
            budget=Budget(row.max_trials, row.max_secs, row.plateau, row.plateau_from),
            shared_trials=row.shared_trials,
            owner=row.owner or "",
            priority=row.priority,
        )
        for row in rows
    }


def cancel(session: Session, job_id: UUID) -> JobRow:
    """End a job: at once if it is queued, at its owner's next poll if it runs.

    A job that has ended does not change.

    Raises:
        ServiceNotFoundError: If there is no such job.
    """
    row = jobs.get(session, job_id, lock=True)
    if row.state is JobState.QUEUED:
        _end(session, row, StopReason.CANCELLED)
    elif row.state is JobState.RUNNING:
        row.cancel_requested = True
    return row


def end_group(session: Session, group_id: UUID, end: Callable[[Session, UUID], JobRow]) -> None:
    """Cancel or stop those jobs of a group that have not ended, and are not about to."""
    for row in groups.members(session, group_id, lock=True):
        if not row.state.is_final:
            with suppress(ServiceConflictError):
                end(session, row.id)


def stop(session: Session, job_id: UUID) -> JobRow:
    """End the search of a job, and request the final comparison of its best trials.

    A job without measurements is cancelled; one that has succeeded does not change.

    Raises:
        ServiceNotFoundError: If there is no such job.
        ServiceConflictError: If the job is being cancelled, or has ended without a result.
    """
    row = jobs.get(session, job_id, lock=True)
    if row.state is JobState.SUCCEEDED or row.stop_reason is StopReason.STOPPED:
        return row
    if row.state.is_final:
        raise ServiceConflictError(
            f"job {job_id} has ended ({row.state}): resume it before you stop it"
        )
    _refuse_cancelled(row)
    if row.state is JobState.QUEUED and not row.num_measured:
        _end(session, row, StopReason.STOPPED)
    else:
        row.stop_requested = True
    return row


def resume(session: Session, job_id: UUID) -> JobRow:
    """Resume a job that was cancelled or stopped, or that failed.

    A queued or running job does not change.

    Raises:
        ServiceNotFoundError: If there is no such job.
        ServiceConflictError: If the job is being cancelled or stopped, has completed its search, or
            has nothing left to do.
    """
    row = jobs.get(session, job_id, lock=True)
    if not row.state.is_final:
        _refuse_cancelled(row)
        _refuse_stopped(row)
        return row
    if row.state is JobState.SUCCEEDED and row.stop_reason is not StopReason.STOPPED:
        raise ServiceConflictError(
            f"job {job_id} has succeeded (ended: {row.stop_reason}) and cannot be resumed: to "
            "continue it, raise its limits"
        )
    _go_on(session, row)
    return row


def change(session: Session, job_id: UUID, changes: Mapping[str, Any]) -> JobRow:
    """Change a job; one that has ended continues under new limits.

    Args:
        changes: New values of fields of `JobChange`; what is not named stays as it is.

    Raises:
        ServiceNotFoundError: If there is no such job.
        ServiceConflictError: If the job is being cancelled or stopped, or if it has ended and the
            new limits leave nothing to do.
    """
    row = jobs.get(session, job_id, lock=True)
    has_new_budget = not BUDGETS.isdisjoint(changes)
    if has_new_budget:
        _refuse_cancelled(row)
        _refuse_stopped(row)
    for name, value in changes.items():
        setattr(row, name, None if value == "" else value)  # an empty text removes the current one
    if has_new_budget and row.state.is_final:
        _go_on(session, row)
    return row


def change_group(session: Session, group_id: UUID, max_trials: int) -> None:
    """Change the trial limit of a group; jobs that ended at the old limit continue.

    Raises:
        ServiceNotFoundError: If there is no such group.
        ServiceConflictError: If all of its jobs have ended, and none can continue.
    """
    group = groups.get(session, group_id, lock=True)
    rows = groups.members(session, group_id, lock=True)
    groups.set_budget(group, rows, max_trials)
    session.flush()
    for row in rows:
        if row.stop_reason is StopReason.BUDGET and why_over(session, row) is None:
            _go_on(session, row)
    if rows and all(row.state.is_final for row in rows):
        raise ServiceConflictError(
            f"all jobs of group {group_id} have ended, and {max_trials} trials are not enough to "
            f"continue: {groups.trials_left(session, group_id)} are left"
        )


def why_over(session: Session, row: JobRow) -> str | None:
    """Return why a job has nothing left to do; None if it has."""
    if row.num_measured >= row.max_trials:
        return f"has measured {row.num_measured} of {row.max_trials} trials: raise its limit"
    if row.group_id is not None and groups.trials_left(session, row.group_id) <= 0:
        return f"belongs to group {row.group_id}, whose trial limit is reached: raise that limit"
    if row.max_secs is not None and row.active_secs >= row.max_secs:
        return f"has used its {row.max_secs:g} seconds: raise its limit"
    if row.stop_reason is StopReason.EXHAUSTED:
        return "has measured its whole design space: no candidates are left"
    return None


def wants_more(session: Session, row: JobRow, result: SearchResult) -> bool:
    """Return whether a job's limits grew after its search had ended."""
    if row.stop_requested or why_over(session, row) is not None:
        return False
    match result.stop_reason:
        case StopReason.BUDGET | StopReason.TIME_BUDGET:
            return True
        case StopReason.PLATEAU:
            return not row.budget.is_on_plateau(result.trials)
        case StopReason.EXHAUSTED | StopReason.STOPPED | StopReason.CANCELLED:
            return False


def _go_on(session: Session, row: JobRow) -> None:
    if (reason := why_over(session, row)) is not None:
        raise ServiceConflictError(f"job {row.id} {reason}")
    if row.stop_reason is StopReason.PLATEAU:
        row.plateau_from = row.num_measured
    row.state, row.finished_at = JobState.QUEUED, None
    row.stop_reason = row.error = None
    row.cancel_requested = row.stop_requested = False
    blame.forget(row)
    jobs.record_state(session, row)


def _end(session: Session, row: JobRow, reason: StopReason) -> None:
    row.state, row.stop_reason, row.finished_at = JobState.CANCELLED, reason, utc_now()
    row.stop_requested = False
    jobs.record_state(session, row)


def _refuse_cancelled(row: JobRow) -> None:
    if row.cancel_requested and not row.state.is_final:
        raise ServiceConflictError(f"job {row.id} is being cancelled: resume it afterwards")


def _refuse_stopped(row: JobRow) -> None:
    if row.stop_requested and not row.state.is_final:
        raise ServiceConflictError(f"job {row.id} is being stopped: resume it afterwards")
