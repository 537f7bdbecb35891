"""`/jobs/{id}`, the controls of a job: cancel, stop, resume, and change its limits.

A job belongs to the token that submitted it: only that token or an admin may change it.
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
    """Change a job of the caller, within the caller's quota."""
    with parts.database.write() as session:
        caller.refuse_stranger([jobs.get(session, job_id, lock=True).owner], f"job {job_id}")
        with quotas.held(session, caller):
            row = act(session, job_id)
    parts.wake()
    return jobs.read(row)


@router.post("/cancel", responses=responses(404, 422))
def cancel_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """End a job and keep its measurements; a job that has ended does not change."""
    return _changed(parts, caller, job_id, controls.cancel)


@router.post("/stop", responses=responses(404, 409, 422))
def stop_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """End a job's search now, then compare its finalists and keep the fastest.

    The job ends as succeeded, with the reason `stopped`; without any trial it is cancelled. A job
    that has succeeded does not change. A job that ended without a result is refused (409).
    """
    return _changed(parts, caller, job_id, controls.stop)


@router.post("/resume", responses=responses(404, 409, 422))
def resume_job(parts: PartsOf, caller: CallerOf, job_id: UUID) -> JobRead:
    """Resume a job that was cancelled or stopped, or that failed.

    No trial is measured twice. A queued or running job does not change. A job that completed its
    search, has nothing left to do, or is about to end is refused (409).
    """
    return _changed(parts, caller, job_id, controls.resume)


@router.patch("", responses=responses(404, 409, 422))
def change_job(parts: PartsOf, caller: CallerOf, job_id: UUID, request: JobChange) -> JobRead:
    """Change the limits, the priority or the texts of a job.

    In a running job, lower limits apply from the next trial, higher ones from the next round. A job
    that already exceeds them ends. A job that has ended continues; if its new limits leave nothing
    to do, the request is refused (409).
    """
    changes = request.model_dump()
    if "priority" in changes:
        quotas.refuse_priority(caller, changes["priority"])
    return _changed(
        parts, caller, job_id, lambda session, job: controls.change(session, job, changes)
    )
