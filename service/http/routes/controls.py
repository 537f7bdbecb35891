"""`/jobs/{id}`, what users do to a job: cancel, stop, resume, and change its budgets.

A job belongs to the token that submitted it: only that token, or an admin, changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy.orm import Session

from service.common.caller import Caller
from service.http.auth import SUBMIT, CallerOf
from service.http.dependencies import Dependencies, PartsOf
from service.http.problems import responses
from service.store.jobs import controls, jobs, quotas
from service.store.jobs.jobs import JobRow
from service.wire.models import JobRead
from service.wire.requests import JobChange

router = APIRouter(prefix="/jobs/{job_id}", tags=["jobs"], dependencies=[SUBMIT])


def _changed(
    parts: Dependencies, caller: Caller, job_id: UUID, act: Callable[[Session, UUID], JobRow]
) -> JobRead:
    """Change a job of the caller's, within the caller's quota."""
    with parts.database.write() as session:
        caller.refuse_stranger([jobs.get(session, job_id, lock=True).owner], f"job {job_id}")
        with quotas.held(session, caller):
            row = act(session, job_id)
    parts.wake()
    return jobs.read(row)


@router.post("/cancel", responses=responses(404, 422))
def cancel_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """End a job and keep what it measured; one that has ended stays as it is."""
    return _changed(parts, caller, job_id, controls.cancel)


@router.post("/stop", responses=responses(404, 409, 422))
def stop_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """End a job's search now, compare the best of what it measured, and keep that.

    It ends as succeeded, with the reason `stopped`; without any trial it is cancelled. One that has
    succeeded stays as it is, and one that ended without a result is refused (409).
    """
    return _changed(parts, caller, job_id, controls.stop)


@router.post("/resume", responses=responses(404, 409, 422))
def resume_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """Have a job that was cancelled or stopped, or failed, go on where it was.

    Nothing is measured twice. A job that waits or runs stays as it is; one that came to its end,
    has nothing left to do, or is about to end is refused (409).
    """
    return _changed(parts, caller, job_id, controls.resume)


@router.patch("", responses=responses(404, 409, 422))
def change_job(parts: PartsOf, caller: CallerOf, job_id: UUID, request: JobChange) -> JobRead:
    """Change the budgets or the priority of a job.

    A running job heeds smaller ones with its next trial, others from its next round on, and ends if
    they are spent already. A job that has ended goes on; if its new budgets leave nothing to do,
    that is refused (409).
    """
    changes = request.model_dump()
    if "priority" in changes:
        quotas.refuse_priority(caller, changes["priority"])
    return _changed(
        parts, caller, job_id, lambda session, job: controls.change(session, job, changes)
    )
