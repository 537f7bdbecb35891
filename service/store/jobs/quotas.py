"""Quotas: the share of a token in the queue, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.common.caller import Caller
from service.common.errors import ForbiddenError, QuotaError
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState

_OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class _Share:
    """The queued and running jobs of a token."""

    num_jobs: int
    num_trials: int


@contextmanager
def held(session: Session, caller: Caller) -> Iterator[None]:
    """Refuse additions of the body to the queue that exceed the caller's quota.

    The comparison of before and after lets a caller who is above a lowered quota shrink jobs.

    Raises:
        QuotaError: If the queue exceeds the quota now; a later request may succeed.
        ForbiddenError: If the addition alone is above the quota.
    """
    quota, name = caller.quota, caller.name
    if name is None or not quota.is_bounded:
        yield
        return
    before = _share(session, name)
    yield
    session.flush()
    after = _share(session, name)
    _compare(name, "queued and running jobs", before.num_jobs, after.num_jobs, quota.max_jobs)
    _compare(name, "remaining trials", before.num_trials, after.num_trials, quota.max_trials)


def refuse_priority(caller: Caller, priority: int) -> None:
    """Refuse a priority above the caller's maximum.

    Raises:
        ForbiddenError: If the priority is above it.
    """
    most = caller.quota.max_priority
    if most is not None and priority > most:
        raise ForbiddenError(
            f"priority {priority} exceeds the maximum of token {caller.name!r}, which is {most}"
        )


def _compare(name: str, unit: str, before: int, after: int, most: int | None) -> None:
    if most is None or after <= most or after <= before:
        return
    added = after - before
    if added > most:
        raise ForbiddenError(
            f"token {name!r} may have {most} {unit} at once; this request alone adds {added}"
        )
    raise QuotaError(
        f"token {name!r} may have {most} {unit} at once; it has {before}, and this request adds "
        f"{added}: wait for jobs to end, or cancel some"
    )


def _share(session: Session, name: str) -> _Share:
    """Return the open jobs of a token's name and their unmeasured trials; a group counts once."""
    is_theirs = (JobRow.owner == name) & JobRow.state.in_(_OPEN)
    remaining = JobRow.max_trials - JobRow.num_measured
    num_jobs, alone = session.execute(
        select(
            func.count(),
            func.coalesce(func.sum(remaining).filter(JobRow.group_id.is_(None)), 0),
        ).where(is_theirs)
    ).one()
    measured = (
        select(func.sum(JobRow.num_measured))
        .where(JobRow.group_id == GroupRow.id)
        .correlate(GroupRow)
        .scalar_subquery()
    )
    theirs = select(JobRow.group_id).where(is_theirs, JobRow.group_id.is_not(None))
    together = session.scalar(
        select(func.coalesce(func.sum(GroupRow.max_trials - measured), 0)).where(
            GroupRow.id.in_(theirs)
        )
    )
    return _Share(num_jobs, int(alone) + int(together or 0))
