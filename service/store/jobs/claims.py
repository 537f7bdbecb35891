"""Claims: the choice of the next job of a coordinator, and the delay after failed claims.

A job with a time window is claimed while the window is open.

Order: jobs that are to be stopped, which takes seconds; then the highest priority; then the fewest
claims in vain; then the owner with the least running and recent work; then the oldest.

A claim is in vain if it ends, by a crash or an error, before any trial was measured. Claims in vain
delay the next claim of the same job, and several in a row delay all claims: a service that is
broken neither spins nor works through its queue. Errors of a job delay that job alone. See
`service.store.jobs.blame` for when a job fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, null, select
from sqlalchemy.orm import Session

from service.common.owner import Owner
from service.store.database import session_locks
from service.store.database.base import shared_now, utc_now
from service.store.database.single_reads import SingleReads
from service.store.jobs import blame, groups, jobs, leases
from service.store.jobs.jobs import JobRow
from service.store.targets import TargetRow
from service.wire.models import JobState
from service.wire.windows import is_open
from tuner.loop.budget import StopReason

_IS_OPEN = JobRow.state.in_((JobState.QUEUED, JobState.RUNNING))
_RECENT = timedelta(hours=1)
_TOLERATED = 2
"""After so many claims in vain in a row, the next claim still follows at once: a service is killed,
too. Chosen.
"""


@dataclass(frozen=True)
class Look:
    """The open jobs as a coordinator sees them before it claims.

    Attributes:
        num_free: Those that may be free.
        num_urgent: Free ones with a priority above the default.
        num_own: Those that the process of the coordinator runs.
    """

    num_open: int
    num_free: int
    num_urgent: int
    num_own: int


def look(reads: SingleReads, is_gone: Callable[[int], bool], lock: int | None = None) -> Look:
    """Look at the open jobs, by one statement and without the lock that writers wait for.

    It is a hint: a claim looks again, at the session locks, too.

    Args:
        lock: The session lock of the process.
    """
    open_jobs: Any = reads.rows(_open_leases(reads.dialect_name), {})
    owners = [Owner.parse(row.lease_owner) for row in open_jobs if row.lease_owner is not None]
    locks = {owner.lock for owner in owners if owner.lock is not None and is_gone(owner.lock)}
    free = [row for row in open_jobs if leases.is_free(row, row.now or utc_now(), locks)]
    return Look(
        num_open=len(open_jobs),
        num_free=len(free),
        num_urgent=sum(row.priority > 0 for row in free),
        num_own=sum(lock is not None and owner.lock == lock for owner in owners),
    )


@cache
def _open_leases(dialect_name: str) -> Any:
    """Return the statement of `look`: columns of the open jobs, and the time of `shared_now`."""
    now = func.clock_timestamp() if dialect_name == "postgresql" else null()
    columns = JobRow.state, JobRow.priority, JobRow.lease_owner, JobRow.lease_until
    return select(*columns, now.label("now")).where(_IS_OPEN)


def claim(session: Session, owner: Owner, **options: Any) -> list[JobRow]:
    """Claim the first free job, with the others of its group; return none if no job is free.

    Args:
        options: Those of `claim_all`.
    """
    return next(iter(claim_all(session, [owner], **options)), [])


def claim_all(
    session: Session,
    owners: Sequence[Owner],
    *,
    lease_secs: float = leases.LEASE_SECS,
    leave: Collection[str] = (),
    at: datetime | None = None,
    is_gone: Callable[[int], bool] | None = None,
) -> list[list[JobRow]]:
    """Claim a free job for each owner, with the others of its group; fewer if no more are free.

    One coordinator runs a group: a job that rejoins it waits until that coordinator returns the
    others.

    A running job is free when its lease has expired, or at once if its owner was a process of this
    host that has ended, or one whose session lock is free. A job with a request to cancel ends
    here, as does one that has crashed its coordinators too often.

    Args:
        leave: The kinds of target whose jobs are left to other coordinators.
        at: The time that decides which windows are open; by default now.
        is_gone: Returns whether the process of a session lock is gone; by default none is.
    """
    queue = _Queue(session, leave, at, is_gone)
    claimed = []
    for owner in owners:
        if not (taken := queue.claim(owner, lease_secs)):
            break
        claimed.append(taken)
    return claimed


class _Queue:
    """The open jobs as a transaction sees them, from which jobs are claimed."""

    def __init__(
        self,
        session: Session,
        leave: Collection[str],
        at: datetime | None,
        is_gone: Callable[[int], bool] | None,
    ) -> None:
        self._session = session
        self._open = _open_jobs(session, leave)
        self._now = shared_now(session)
        self._at = at or self._now
        self._locks = _free_locks(session, self._open, is_gone)
        self._free = {row.id for row in self._open if leases.is_free(row, self._now, self._locks)}
        self._running = Counter(row.owner for row in self._open if row.id not in self._free)
        self._recent: dict[str | None, float] = {}
        if len({row.owner for row in self._open}) > 1:
            self._recent = _recent_secs(session, self._now)

    def claim(self, owner: Owner, lease_secs: float) -> list[JobRow]:
        """Claim the first free job, with the others of its group; return none if no job is free."""
        free = [row for row in self._open if row.id in self._free]
        is_put_off = self._now < _put_off_until(self._session, free, self._now)
        for waiting in self._in_order(free):
            must_wait = is_put_off or not self._may_run(waiting)
            if not waiting.cancel_requested and must_wait:
                continue
            row = jobs.get(self._session, waiting.id, lock=True)
            if row.cancel_requested:  # its owner ended before it read the request
                row.stop_reason = StopReason.CANCELLED
                leases.end(self._session, row, JobState.CANCELLED, None)
                self._free.remove(row.id)
                continue
            together = [row]
            if row.group_id is not None:
                together = _open_members(self._session, row.group_id)
            if not all(map(self._is_free, together)):
                continue
            self._free -= {member.id for member in together}
            taken = [m for m in together if _take(self._session, m, owner, lease_secs)]
            if taken:
                self._running.update(member.owner for member in taken)
                return taken
        return []

    def _may_run(self, row: Any) -> bool:
        return not _is_delayed(row, self._now) and is_open(row.window, self._at)

    def _is_free(self, row: JobRow) -> bool:
        return leases.is_free(row, self._now, self._locks) and self._may_run(row)

    def _in_order(self, free: Sequence[Row[Any]]) -> Sequence[Row[Any]]:
        return sorted(
            free,
            key=lambda row: (
                not row.stop_requested,
                -row.priority,
                max(0, row.fruitless_claims - 1),
                self._running[row.owner],
                self._recent.get(row.owner, 0.0),
                row.created_at,
                row.id,
            ),
        )


def _open_jobs(session: Session, leave: Collection[str]) -> Sequence[Row[Any]]:
    """Return the columns of the open jobs that the choice depends on."""
    query = select(
        *(JobRow.id, JobRow.owner, JobRow.state, JobRow.priority, JobRow.created_at),
        *(JobRow.stop_requested, JobRow.cancel_requested, JobRow.lease_owner, JobRow.lease_until),
        *(JobRow.fruitless_claims, JobRow.claimed_at, JobRow.retry_at, JobRow.group_id),
        JobRow.window,
    ).where(_IS_OPEN)
    if leave:
        others = select(TargetRow.name).where(TargetRow.label.in_(leave))
        query = query.where(JobRow.target.not_in(others))
    rows: Any = session.execute(query).all()
    return list(rows)


def _free_locks(
    session: Session, open_jobs: Sequence[Row[Any]], is_gone: Callable[[int], bool] | None
) -> set[int]:
    """Return the session locks of owners of jobs that no process holds any more."""
    if is_gone is None:
        return set()
    owners = {Owner.parse(row.lease_owner) for row in open_jobs if row.lease_owner is not None}
    gone = {owner.lock for owner in owners if owner.lock is not None and is_gone(owner.lock)}
    # A process may have taken its lock again since the last look.
    return gone - session_locks.held(session) if gone else gone


def _recent_secs(session: Session, now: datetime) -> dict[str | None, float]:
    """Return the seconds that each owner's jobs ran which are open or ended within the hour."""
    is_recent = JobRow.finished_at.is_(None) | (JobRow.finished_at > now - _RECENT)
    query = select(JobRow.owner, func.sum(JobRow.active_secs)).where(is_recent)
    return {row[0]: row[1] for row in session.execute(query.group_by(JobRow.owner))}


def _put_off_until(session: Session, free_jobs: Sequence[Row[Any]], now: datetime) -> datetime:
    """Return when any job may be claimed again after consecutive claims in vain."""
    in_vain = [row for row in free_jobs if row.fruitless_claims and row.claimed_at is not None]
    if in_vain:
        progress_at = session.scalar(select(func.max(JobRow.progress_at)))
        in_vain = [r for r in in_vain if progress_at is None or r.claimed_at > progress_at]
    if not in_vain:
        return datetime.min.replace(tzinfo=now.tzinfo)
    num = sum(_num_in_vain(in_vain).values())
    newest: datetime = max(row.claimed_at for row in in_vain)
    return newest + blame.delay(num - _TOLERATED + 1)


def _num_in_vain(rows: Sequence[Row[Any]]) -> dict[UUID, int]:
    """Return the claims in vain by job or by group, whose jobs are claimed together."""
    counts: dict[UUID, int] = {}
    for row in rows:
        together = row.group_id or row.id
        counts[together] = max(counts.get(together, 0), row.fruitless_claims)
    return counts


def _is_delayed(row: Any, now: datetime) -> bool:
    return row.retry_at is not None and now < row.retry_at


def _open_members(session: Session, group_id: UUID) -> list[JobRow]:
    members = groups.members(session, group_id, lock=True)
    return [row for row in members if not (row.state.is_final or row.cancel_requested)]


def _take(session: Session, row: JobRow, owner: Owner, lease_secs: float) -> bool:
    """Claim a free job, unless it has to end; return whether it was claimed."""
    if (reason := blame.why_given_up(session, row)) is not None:
        leases.end(session, row, JobState.FAILED, reason)
        return False
    resumed = row.started_at is not None
    now = shared_now(session)
    row.state = JobState.RUNNING
    row.lease_owner = str(owner)
    row.lease_until = now + timedelta(seconds=lease_secs)
    row.started_at = row.started_at or now
    row.active_at = now
    blame.note_claim(row)
    jobs.record_state(session, row, resumed=resumed)
    return True
