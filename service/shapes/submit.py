"""Submit searches over ranges: their sizes become jobs that share one trial limit."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.intake.request_validation import read_target
from service.intake.shapes_text import NewShapes, read_shapes
from service.jobs.jobs import Queue, attach_webhook
from service.jobs.subjects import new_columns, submit_subject
from service.shapes.reading import read
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
    return submit_subject(
        database,
        request,
        idempotency_key,
        caller,
        ShapesRow,
        read_body=lambda: read_shapes(
            request.workload, request.ranges, request.max_trials // ROUND_SIZE
        ),
        add=lambda session, new: _add(session, request, new, caller),
        read=read,
    )


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
        **new_columns(request.name or new.name, group, jobs[0], caller),
        workload_key=new.workload_key,
        script=new.script,
        ranges={name: list(ends) for name, ends in new.ranges.items()},
    )
    session.add(row)
    session.flush()
    session.add_all(
        ShapeSizeRow(shapes_id=row.id, number=number, sizes=dict(size.sizes), job_id=job.id)
        for number, (size, job) in enumerate(zip(new.sizes, jobs, strict=True))
    )
    attach_webhook(session, request, "group", group.id, jobs)
    return jobs[0]
