"""Leases: the coordinator that owns a running job.

A coordinator owns a job from its claim until it finishes or releases the job, or stops renewing the
lease. Every write of an owner checks the lease in its own transaction. So a coordinator that hung
and lost its lease cannot write into a job of another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session, lazyload

from service.common.errors import LeaseLostError, ServiceNotFoundError
from service.common.owner import Owner
from service.store.database.base import shared_now, utc_now
from service.store.jobs import blame, jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from tuner.loop.budget import StopReason

LEASE_SECS = 30.0
"""A lease that was not renewed for so long is lost. It is renewed three times in this period, so
that a short hang loses no job. Chosen.
"""

WITHOUT_RELATED = tuple(map(lazyload, (JobRow.baselines, JobRow.finals, JobRow.webhook_row)))
"""Rows that are changed often: what belongs to them is read only if it is used."""


def owned(session: Session, job_id: UUID, owner: str) -> JobRow:
    """Return the locked job if `owner` holds its lease; count the time until now.

    Raises:
        LeaseLostError: If `owner` does not hold the lease.
    """
    stored_row = session.get(JobRow, job_id, options=WITHOUT_RELATED, with_for_update=True)
    row = require(stored_row, job_id, owner)
    row.count_time(shared_now(session))
    return row


def require(row: JobRow | None, job_id: UUID, owner: str) -> JobRow:
    """Return a locked job if it exists, and `owner` holds its lease.

    Raises:
        ServiceNotFoundError: If the job does not exist.
        LeaseLostError: If `owner` does not hold the lease.
    """
    if row is None:
        raise ServiceNotFoundError(f"no job {job_id}")
    require_owner(job_id, row.state, row.lease_owner, owner)
    return row


def require_owner(job_id: UUID, state: JobState, lease_owner: str | None, owner: str) -> None:
    """Refuse an owner that does not hold the lease of a job.

    Args:
        state: The state of the job.
        lease_owner: Who holds its lease; None without one.

    Raises:
        LeaseLostError: If that is not `owner`, or the job does not run.
    """
    if state is not JobState.RUNNING or lease_owner != owner:
        raise LeaseLostError(f"job {job_id} is {state}, owned by {lease_owner}, not by {owner}")


def renew(
    session: Session, owners: Mapping[UUID, Owner], *, lease_secs: float = LEASE_SECS
) -> set[UUID]:
    """Extend the leases of jobs by their owners; return the jobs that their owners have lost."""
    rows = session.scalars(
        select(JobRow).where(JobRow.id.in_(owners)).options(*WITHOUT_RELATED).with_for_update()
    )
    now = shared_now(session)
    lost = set(owners)
    for row in rows:
        if _is_owned(row, str(owners[row.id])):
            row.count_time(now)
            row.lease_until = now + timedelta(seconds=lease_secs)
            lost.remove(row.id)
    return lost


def release(session: Session, job_id: UUID, owner: Owner) -> None:
    """Release the lease, so that another coordinator can resume the job.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    row = owned(session, job_id, str(owner))
    blame.forget(row)
    _requeue(session, row)


def give_up(
    session: Session,
    job_id: UUID,
    owner: Owner,
    error: str,
    *,
    is_own: bool,
    has_begun: bool,
    max_errors: int = blame.MAX_CRASHES,
) -> None:
    """Return the job to the queue after an error; it fails after repeated errors of its own.

    Args:
        is_own: Whether the job caused the error; else the service did, and the job is retried
            later.
        has_begun: Whether `blame.begin_work` was called for this claim.
        max_errors: After so many errors of its own in a row the job fails.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    row = owned(session, job_id, str(owner))
    blame.count_error(row, is_own=is_own, has_begun=has_begun)
    if is_own and row.crashes >= max_errors:
        end(session, row, JobState.FAILED, error)
    else:
        _requeue(session, row)


def finish(
    session: Session,
    job_id: UUID,
    owner: Owner,
    state: JobState,
    *,
    stop_reason: StopReason,
    error: str | None = None,
) -> None:
    """End the job in a final state, with the stop reason of its search.

    Raises:
        LeaseLostError: If `owner` no longer holds the lease.
    """
    assert state.is_final, state
    row = owned(session, job_id, str(owner))
    row.stop_reason = stop_reason
    end(session, row, state, error)


def is_free(row: Any, now: datetime, free_locks: Collection[int] = ()) -> bool:
    """Return whether no coordinator runs a job, from a row with its state and its lease.

    Args:
        now: The time of `shared_now`.
        free_locks: The session locks whose processes are gone; see `Owner.lock`.
    """
    if row.state is JobState.QUEUED or row.lease_owner is None or row.lease_until is None:
        return True
    owner = Owner.parse(row.lease_owner)
    return row.lease_until < now or owner.lock in free_locks or owner.is_gone()


def _is_owned(row: JobRow, owner: str) -> bool:
    return row.state is JobState.RUNNING and row.lease_owner == owner


def _requeue(session: Session, row: JobRow) -> None:
    row.state = JobState.QUEUED
    row.lease_owner = row.lease_until = row.active_at = None
    jobs.record_state(session, row)


def end(session: Session, row: JobRow, state: JobState, error: str | None) -> None:
    """End a job that is free, or whose lease the caller holds."""
    row.state, row.error, row.finished_at = state, error, utc_now()
    row.lease_owner = row.lease_until = row.active_at = None
    jobs.record_state(session, row)
