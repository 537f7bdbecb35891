"""Leases: who drives a running job.

A coordinator owns a job from its claim until it finishes or releases it, or until it stops
renewing. Every write of an owner checks the lease in its own transaction, so a coordinator that
was thought dead and comes back cannot write into a job that another has taken over.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from loopwright.models import JobState
from service.errors import LeaseLostError
from service.owner import Owner
from service.store import groups, jobs
from service.store.base import utc_now
from service.store.jobs import JobRow
from service.store.targets import TargetRow
from tuner.budget import StopReason

LEASE_SECS = 30.0
MAX_FRUITLESS_CLAIMS = 5


def claim(
    session: Session,
    owner: Owner,
    *,
    lease_secs: float = LEASE_SECS,
    leave: Collection[str] = (),
) -> list[JobRow]:
    """Take the first job that nobody drives, with those of its group; none if there is none.

    Jobs that are to be stopped come first, which takes seconds, then those of a higher priority,
    then the oldest. A group is driven by one coordinator: a job that joins it again waits until
    that one puts the others back.

    A running job is free when its lease has run out, and at once when its owner was a process of
    this host that is gone. A job that was claimed again and again and never got as far as one
    trial brings its coordinators down: it fails instead of being claimed once more. One that
    somebody wants cancelled ends here.

    Args:
        leave: The kinds of target whose jobs are for others.
    """
    query = (
        select(JobRow)
        .where(JobRow.state.in_((JobState.QUEUED, JobState.RUNNING)))
        .order_by(
            JobRow.stop_requested.desc(), JobRow.priority.desc(), JobRow.created_at, JobRow.id
        )
        .with_for_update(skip_locked=True)
    )
    if leave:
        others = select(TargetRow.name).where(TargetRow.label.in_(leave))
        query = query.where(JobRow.target.not_in(others))
    for row in session.scalars(query):
        together = [row] if row.group_id is None else _open_members(session, row.group_id)
        if not all(map(_is_free, together)):
            continue
        taken = [member for member in together if _take(session, member, owner, lease_secs)]
        if taken:
            return taken
    return []


def _open_members(session: Session, group_id: UUID) -> list[JobRow]:
    return [row for row in groups.members(session, group_id, lock=True) if not row.state.is_final]


def _take(session: Session, row: JobRow, owner: Owner, lease_secs: float) -> bool:
    """Take a job that is free, unless it has to end."""
    if row.cancel_requested:  # its owner was gone before it looked
        row.stop_reason = StopReason.CANCELLED
        _end(session, row, JobState.CANCELLED, None)
        return False
    if row.fruitless_claims >= MAX_FRUITLESS_CLAIMS:
        _end(
            session,
            row,
            JobState.FAILED,
            f"given up: the service stopped {row.fruitless_claims} times in a row while "
            "working on this job, before any trial was measured",
        )
        return False
    resumed = row.started_at is not None
    row.state = JobState.RUNNING
    row.lease_owner = str(owner)
    row.lease_until = utc_now() + timedelta(seconds=lease_secs)
    row.started_at = row.started_at or utc_now()
    row.active_at = utc_now()
    row.fruitless_claims += 1
    jobs.record_state(session, row, resumed=resumed)
    return True


def owned(session: Session, job_id: UUID, owner: str) -> JobRow:
    """Return the job, locked, if `owner` holds its lease; the time until now is counted.

    Raises:
        LeaseLostError: If it does not.
    """
    row = jobs.get(session, job_id, lock=True)
    if row.state is not JobState.RUNNING or row.lease_owner != owner:
        raise LeaseLostError(
            f"job {job_id} is {row.state}, owned by {row.lease_owner}, not by {owner}"
        )
    row.count_time()
    return row


def renew(session: Session, job_id: UUID, owner: Owner, *, lease_secs: float = LEASE_SECS) -> bool:
    """Extend the lease; tell whether somebody wants the job cancelled.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    row = owned(session, job_id, str(owner))
    row.lease_until = utc_now() + timedelta(seconds=lease_secs)
    return row.cancel_requested


def release(session: Session, job_id: UUID, owner: Owner) -> None:
    """Give the job back in good order, to be resumed by whoever comes next.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    row = owned(session, job_id, str(owner))
    row.fruitless_claims = 0
    _requeue(session, row)


def give_up(session: Session, job_id: UUID, owner: Owner, error: str) -> int:
    """Give the job back after an error of ours; it fails if that happens again and again.

    Returns:
        How many times in a row it was claimed in vain.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    row = owned(session, job_id, str(owner))
    if row.fruitless_claims >= MAX_FRUITLESS_CLAIMS:
        _end(session, row, JobState.FAILED, error)
    else:
        _requeue(session, row)
    return row.fruitless_claims


def count_as_fruitful(session: Session, job: JobRow) -> None:
    """Note that a trial was measured: whoever drives the job, or its group, gets somewhere."""
    if not job.fruitless_claims:
        return
    together = [job] if job.group_id is None else groups.members(session, job.group_id, lock=True)
    for row in together:
        row.fruitless_claims = 0


def finish(
    session: Session,
    job_id: UUID,
    owner: Owner,
    state: JobState,
    *,
    stop_reason: StopReason,
    error: str | None = None,
) -> None:
    """End the job in a final state, its search for a reason.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    assert state.is_final, state
    row = owned(session, job_id, str(owner))
    row.stop_reason = stop_reason
    _end(session, row, state, error)


def _is_free(row: JobRow) -> bool:
    if row.state is JobState.QUEUED or row.lease_owner is None or row.lease_until is None:
        return True
    return row.lease_until < utc_now() or Owner.parse(row.lease_owner).is_gone()


def _requeue(session: Session, row: JobRow) -> None:
    row.state = JobState.QUEUED
    row.lease_owner = row.lease_until = row.active_at = None
    jobs.record_state(session, row)


def _end(session: Session, row: JobRow, state: JobState, error: str | None) -> None:
    row.state, row.error, row.finished_at = state, error, utc_now()
    row.lease_owner = row.lease_until = row.active_at = None
    jobs.record_state(session, row)
