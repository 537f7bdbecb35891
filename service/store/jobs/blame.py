"""Blame: decide whether a job or the service is the cause of failed claims.

A job may crash its coordinator, for example by using all memory. Other causes are a restart of the
host, workers that do not start, or a full disk. A job fails only for causes of its own:

- Its first claim in vain proves nothing. Before the next one the coordinator measures a known
  kernel; only if that succeeds the job's own work begins, and a crash from then on is the job's.
- An error that names the service (a database or workers that do not answer) is never the job's.
- While several jobs crash and none gets anywhere, the service is suspected: each of them may crash
  more often before it fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, object_session

from service.store.database.base import shared_now
from service.store.jobs import groups
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState

MAX_CRASHES = 5
"""A job that crashed its coordinator so often fails. Chosen: chance crashes seldom repeat."""
MAX_PREPARATIONS = 2
"""A job that could not be prepared so often fails: the same program and rules raise the same error
again. Chosen.
"""
_MAX_CRASHES_OF_MANY = 15
"""The same while several jobs crash and none makes progress, so that the service is suspected.
Chosen.
"""
_MANY = 3
"""So many crashing jobs make the service suspected. Chosen."""
_MAX_DELAY_SECS = 300
"""Longest pause before a job is claimed again. Chosen."""


def delay(num_in_vain: int) -> timedelta:
    """Return how long to wait after so many claims in vain: nothing, 1 s, 2 s, 4 s, ..."""
    if num_in_vain < 2:
        return timedelta(0)
    return timedelta(seconds=min(2 ** min(num_in_vain - 2, 30), _MAX_DELAY_SECS))


def note_claim(row: JobRow) -> None:
    """Count a claim; it is in vain until a trial is measured."""
    row.claimed_at = shared_now(object_session(row))
    row.fruitless_claims += 1
    row.retry_at = row.claimed_at + delay(row.fruitless_claims)


def is_suspect(row: JobRow) -> bool:
    """Return whether claims before the current one were in vain."""
    return row.fruitless_claims > 1


def begin_work(rows: Iterable[JobRow]) -> None:
    """Note that the own work of suspects begins: a crash from here on is theirs."""
    for row in rows:
        if is_suspect(row):
            row.crashes += 1


def count_error(row: JobRow, *, is_own: bool, has_begun: bool) -> None:
    """Note an error that ended a claim, and when the job may be claimed again.

    Args:
        is_own: Whether the error is the job's; else the service's.
        has_begun: Whether `begin_work` was called for this claim.
    """
    if has_begun and is_suspect(row):
        row.crashes -= 1
    if is_own:
        row.crashes += 1
        row.claimed_at = None  # the claim says nothing about the service: no other job waits
    row.retry_at = shared_now(object_session(row)) + delay(row.fruitless_claims)


def forget(row: JobRow) -> None:
    """Note that a job makes progress, or that a user retries it."""
    row.fruitless_claims = row.crashes = 0
    row.retry_at = None


def note_progress(session: Session, job: JobRow) -> None:
    """Note that a trial was measured: of this job, for all of its group."""
    if not job.fruitless_claims:
        return
    together = [job] if job.group_id is None else groups.members(session, job.group_id, lock=True)
    for row in together:
        forget(row)


def why_given_up(session: Session, row: JobRow) -> str | None:
    """Say why a job is not claimed again; None if it may be."""
    if row.crashes < MAX_CRASHES:
        return None
    if row.crashes < _MAX_CRASHES_OF_MANY and _is_service_suspected(session, row):
        return None
    return (
        f"given up: the service crashed {row.crashes} times in a row on this job before any trial "
        "was measured, each time after a successful measurement of the reference kernel"
    )


def _is_service_suspected(session: Session, row: JobRow) -> bool:
    """Return whether other jobs crash too, and none has measured anything since."""
    progress_at = session.scalar(select(func.max(JobRow.progress_at)))
    others = select(func.count()).where(
        JobRow.state.in_((JobState.QUEUED, JobState.RUNNING)), JobRow.crashes > 0
    )
    if row.group_id is None:
        others = others.where(JobRow.id != row.id)
    else:
        others = others.where(JobRow.group_id.is_distinct_from(row.group_id))
    if progress_at is not None:
        others = others.where(JobRow.claimed_at > progress_at)
    return (session.scalar(others) or 0) + 1 >= _MANY
