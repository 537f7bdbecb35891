"""`/jobs/{id}`, what users do to a job: cancel, stop, resume, and change its budgets."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter

from loopwright.models import JobChange, JobRead
from service.auth import SUBMIT
from service.parts import PartsOf
from service.problems import responses
from service.store import controls, jobs

router = APIRouter(prefix="/jobs/{job_id}", tags=["jobs"], dependencies=[SUBMIT])


@router.post("/cancel", responses=responses(404, 422))
def cancel_job(parts: PartsOf, job_id: UUID) -> JobRead:
    """End a job and keep what it measured; one that has ended stays as it is."""
    with parts.database.write() as session:
        row = controls.cancel(session, job_id)
    parts.wake()
    return jobs.read(row)


@router.post("/stop", responses=responses(404, 409, 422))
def stop_job(parts: PartsOf, job_id: UUID) -> JobRead:
    """End a job's search now, compare the best of what it measured, and keep that.

    It ends as succeeded, with the reason `stopped`; without any trial it is cancelled. One that has
    succeeded stays as it is, and one that ended without a result is refused (409).
    """
    with parts.database.write() as session:
        row = controls.stop(session, job_id)
    parts.wake()
    return jobs.read(row)


@router.post("/resume", responses=responses(404, 409, 422))
def resume_job(parts: PartsOf, job_id: UUID) -> JobRead:
    """Have a job that was cancelled or stopped, or failed, go on where it was.

    Nothing is measured twice. A job that waits or runs stays as it is; one that came to its end,
    has nothing left to do, or is about to end is refused (409).
    """
    with parts.database.write() as session:
        row = controls.resume(session, job_id)
    parts.wake()
    return jobs.read(row)


@router.patch("", responses=responses(404, 409, 422))
def change_job(parts: PartsOf, job_id: UUID, request: JobChange) -> JobRead:
    """Change the budgets or the priority of a job.

    A running job heeds smaller ones with its next trial, others from its next round on, and ends if
    they are spent already. A job that has ended goes on; if its new budgets leave nothing to do,
    that is refused (409).
    """
    with parts.database.write() as session:
        row = controls.change(session, job_id, request.model_dump())
    parts.wake()
    return jobs.read(row)
