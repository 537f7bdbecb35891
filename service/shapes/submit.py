"""Submit searches over ranges: their sizes become jobs that share one trial limit."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.intake.request_validation import read_target
from service.intake.shapes_text import NewShapes, read_shapes
from service.jobs.groups import group_of
from service.jobs.jobs import IdempotencyKey, Queue, attach_webhook, submit_once
from service.shapes.reading import read
from service.store import shapes
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import groups
from service.store.jobs.jobs import JobRow
from service.store.shapes import ShapeSizeRow, ShapesRow
from service.wire.requests import ShapesCreate
from service.wire.shape_reads import ShapesRead
from tuner.loop.search_loop import ROUND_SIZE
from tuner.shapes.ranges import require_cpu


def submit_shapes(
    database: Database,
    request: ShapesCreate,
    idempotency_key: str | None = None,
    *,
    caller: Caller = ANYBODY,
) -> tuple[ShapesRead, bool]:
    """Queue jobs for sizes spread over ranges, or return the search that the key already made.

    Args:
        caller: The owner of the new jobs.

    Returns:
        The search, and whether it is new.

    Raises:
        UnprocessableError: If the program, a range, the target or a rule is invalid, the trials are
            fewer than a round, or the key was used for another request.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    return submit_once(
        database,
        IdempotencyKey.of(request, idempotency_key, caller),
        caller,
        read_body=lambda: _read_shapes(request),
        add=lambda session, new: _add(session, request, new, caller),
        read_result=lambda session, job: read(session, _of_job(session, job)),
    )


def _of_job(session: Session, job: JobRow) -> ShapesRow:
    row = shapes.of_group(session, group_of(job))
    assert row is not None, "its idempotency key belongs to a request for a search over ranges"
    return row


def _read_shapes(request: ShapesCreate) -> NewShapes:
    if request.max_trials < ROUND_SIZE:
        detail = f"{request.max_trials} trials are too few: expected {ROUND_SIZE} or more"
        raise UnprocessableError(detail, Flaw(detail, "/max_trials"))
    return read_shapes(request.workload, request.ranges, request.max_trials // ROUND_SIZE)


def _add(session: Session, request: ShapesCreate, new: NewShapes, caller: Caller) -> JobRow:
    target = read_target(session, request.target)
    try:
        require_cpu(target)
    except ValueError as error:
        raise UnprocessableError(str(error), Flaw(str(error), "/target")) from error
    queue = Queue(session, request, caller)
    group = groups.create(session, request.max_trials)
    jobs = [queue.add(size.workload, group_id=group.id, weight=size.weight) for size in new.sizes]
    row = ShapesRow(
        id=uuid4(),
        name=request.name or new.name,
        target=jobs[0].target,
        owner=caller.name,
        group_id=group.id,
        workload_key=new.workload_key,
        script=new.script,
        ranges={name: list(ends) for name, ends in new.ranges.items()},
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    session.add_all(
        ShapeSizeRow(shapes_id=row.id, number=number, sizes=dict(size.sizes), job_id=job.id)
        for number, (size, job) in enumerate(zip(new.sizes, jobs, strict=True))
    )
    attach_webhook(session, request, "group", group.id, jobs)
    return jobs[0]
