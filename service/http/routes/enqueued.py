"""`enqueue`: queue a job for a requested schedule that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from service.common.caller import Caller
from service.common.errors import ForbiddenError, QuotaError, ServiceNotFoundError
from service.http.auth import refuse_unless
from service.http.dependencies import Dependencies
from service.jobs.enqueue import enqueue
from service.wire.requests import ScheduleQuery
from service.wire.server_models import Scope

HEADER = "Loopwright-Job"


@contextmanager
def enqueued(parts: Dependencies, caller: Caller, query: ScheduleQuery) -> Iterator[dict[str, str]]:
    """Queue a job for the requested schedule; the body has the best existing one.

    Args:
        query: A query; a job is queued only if it has `enqueue`.

    Yields:
        The headers of the answer, which name the job if there is one. A `ServiceNotFoundError` of
        the body names it too.

    Raises:
        HTTPException: 403 if a job is requested and the caller may not submit one.
    """
    if not query.enqueue:
        yield {}
        return
    refuse_unless(caller, Scope.SUBMIT)
    queued, advice = None, ""
    try:
        queued = enqueue(parts.database, query, caller=caller)
    except (ForbiddenError, QuotaError) as error:  # the look-up itself is still answered
        advice = f"no job was queued: {error}"
    if queued is not None and queued.is_new:
        parts.wake()
    try:
        yield {} if queued is None else {HEADER: str(queued.job.id)}
    except ServiceNotFoundError as error:
        if queued is None and not advice:
            raise
        job_id = None if queued is None else queued.job.id
        raise ServiceNotFoundError(error.reason, job_id, advice=advice or str(queued)) from error
