"""Health: whether the process lives, whether it can serve, and how each part does."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError

from loopwright.models import Health, JobState, WorkerState
from service.parts import PartsOf
from service.problems import problem_response
from service.store import jobs, workers

probes = APIRouter(tags=["health"])
router = APIRouter(prefix="/health", tags=["health"])


@probes.get("/livez", status_code=204, response_class=Response)
async def livez() -> None:
    """Say that the process lives, also when all its threads are busy."""


@probes.get("/readyz", status_code=204, response_class=Response)
def readyz(parts: PartsOf) -> Response:
    """Say whether requests can be answered: the database must be there."""
    try:
        with parts.database.read() as session:
            jobs.count_by_state(session)
    except SQLAlchemyError as error:
        return problem_response(503, f"the database does not answer: {error}", instance="/readyz")
    return Response(status_code=204)


@router.get("")
def get_health(parts: PartsOf) -> Health:
    """Say how each part of the service does."""
    with parts.database.read() as session:
        counts = jobs.count_by_state(session)
        alive = [s for s in workers.states(session) if s in {WorkerState.IDLE, WorkerState.BUSY}]
    return Health(
        status="ok" if parts.is_coordinating() else "degraded",
        version=_version(),
        checks={
            "database": "ok",
            "coordinator": "ok" if parts.is_coordinating() else "not running",
        },
        num_workers=len(alive),
        num_queued=counts.get(JobState.QUEUED, 0),
        num_running=counts.get(JobState.RUNNING, 0),
    )


def _version() -> str:
    try:
        return version("loopwright")
    except PackageNotFoundError:
        return "unknown"
