"""Submit and read groups: jobs that share one trial limit. Independent of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.request_validation import read_workload
from service.jobs.jobs import IdempotencyKey, Queue, attach_webhook, submit_once
from service.store.database.database import Database
from service.store.jobs import groups, jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import GroupRead, JobRead, JobState
from service.wire.requests import GroupCreate
from service.wire.times import TimeKind
from tuner.loop.search_loop import ROUND_SIZE


def submit_group(
    database: Database,
    request: GroupCreate,
    idempotency_key: str | None = None,
    *,
    caller: Caller = ANYBODY,
) -> tuple[GroupRead, bool]:
    """Queue a group of jobs, or return the group that the idempotency key already made.

    Args:
        caller: The owner of the new jobs.

    Returns:
        The group, and whether it is new.

    Raises:
        UnprocessableError: If a workload, the target or a rule is invalid, a workload occurs
            twice, the trials are fewer than a round for each task, or the key was used for another
            request.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    return submit_once(
        database,
        IdempotencyKey.of(request, idempotency_key, caller),
        caller,
        read_body=lambda: _read_tasks(request),
        add=lambda session, workloads: _add(session, request, workloads, caller),
        read_result=lambda session, job: read(session, group_of(job)),
    )


def group_of(job: JobRow) -> UUID:
    """Return the id of the group of a job that was submitted in one."""
    assert job.group_id is not None, "its idempotency key belongs to a request for a group"
    return job.group_id


def _add(
    session: Session, request: GroupCreate, workloads: Sequence[NewWorkload], caller: Caller
) -> JobRow:
    queue = Queue(session, request, caller)
    group = groups.create(session, request.max_trials)
    rows = [
        queue.add(workload, group_id=group.id, weight=task.weight)
        for task, workload in zip(request.tasks, workloads, strict=True)
    ]
    attach_webhook(session, request, "group", group.id, rows)
    return rows[0]


def read(session: Session, group_id: UUID) -> GroupRead:
    """Return a group as the API shows it.

    Raises:
        ServiceNotFoundError: If the group does not exist.
    """
    group = groups.get(session, group_id)
    rows = groups.members(session, group_id)
    members = tuple(jobs.read(row) for row in rows)
    kind = _common_kind(members)
    return GroupRead(
        id=group.id,
        max_trials=group.max_trials,
        num_measured=sum(job.num_measured for job in members),
        best_secs=_weighted(members, [job.best_time.of(kind) for job in members]),
        default_secs=_weighted(members, [job.default_time.of(kind) for job in members]),
        kind=kind,
        created_at=group.created_at,
        jobs=members,
        webhook=members[0].webhook if members else None,
    )


def state_of(states: Sequence[JobState]) -> JobState:
    """Return the state of jobs together: the first of these that one of them has."""
    order = (
        JobState.RUNNING,
        JobState.QUEUED,
        JobState.CANCELLED,
        JobState.SUCCEEDED,
        JobState.FAILED,
    )
    return next(state for state in order if state in states)


def _common_kind(members: Sequence[JobRead]) -> TimeKind:
    """Return the kind of times that all jobs have; times of different kinds have no sum."""
    kinds = {kind for job in members for kind in (job.best_time.kind, job.default_time.kind)}
    common = next(iter(kinds)) if len(kinds) == 1 else None
    return common or TimeKind.PROVISIONAL


def _weighted(members: Sequence[JobRead], secs: Sequence[float | None]) -> float | None:
    weighted_secs = [
        job.weight * job_secs
        for job, job_secs in zip(members, secs, strict=True)
        if job_secs is not None
    ]
    return sum(weighted_secs) if len(weighted_secs) == len(members) else None


def _read_tasks(request: GroupCreate) -> list[NewWorkload]:
    by_key: dict[str, NewWorkload] = {}
    for index, task in enumerate(request.tasks):
        try:
            workload = read_workload(task.workload, to_tune=True)
        except UnprocessableError as error:
            raise _within(error, f"/tasks/{index}") from error
        if workload.key in by_key:
            detail = (
                f"task {index} repeats an earlier workload: list it once, with the sum of the "
                "weights"
            )
            raise UnprocessableError(detail, Flaw(detail, f"/tasks/{index}/workload"))
        by_key[workload.key] = workload
    if request.max_trials < ROUND_SIZE * len(by_key):
        detail = (
            f"{request.max_trials} trials are too few for {len(by_key)} tasks: "
            f"expected {ROUND_SIZE} or more per task"
        )
        raise UnprocessableError(detail, Flaw(detail, "/max_trials"))
    return list(by_key.values())


def _within(error: UnprocessableError, pointer: str) -> UnprocessableError:
    """Return an error of a task with pointers into the whole request."""
    flaws = (Flaw(f.detail, f"{pointer}{f.pointer or ''}", f.line, f.column) for f in error.flaws)
    return UnprocessableError(error.detail, *flaws)
