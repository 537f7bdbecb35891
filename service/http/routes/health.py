"""Health: whether the process is alive, whether it can serve, and the state of each part."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import structlog
from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError

from service.http.dependencies import PartsOf
from service.http.problems import problem_response, responses
from service.store import workers
from service.store.database import migrate
from service.store.jobs import jobs
from service.wire.models import JobState
from service.wire.server_models import Health, WorkerState

_log = structlog.get_logger()

probes = APIRouter(tags=["health"])
router = APIRouter(prefix="/health", tags=["health"])


@probes.get("/livez", status_code=204, response_class=Response)
async def livez() -> None:
    """Answer that the process is alive, even if all its threads are busy."""


@probes.get("/readyz", status_code=204, response_class=Response, responses=responses(503))
def readyz(parts: PartsOf) -> Response:
    """Return whether requests can be answered.

    The database must have this version's tables and be writable, and its file must be intact.
    """
    try:
        with parts.database.read() as session:
            is_current = migrate.is_current(session.connection())
        trouble = parts.database.trouble()
    except SQLAlchemyError:
        _log.warning("not ready: the database does not respond", exc_info=True)
        return problem_response(503, "the database does not respond", instance="/readyz")
    if not is_current:
        detail = "another version of Loopwright changed the database: restart the service"
        return problem_response(503, detail, instance="/readyz")
    if trouble is not None:
        return problem_response(503, trouble, instance="/readyz")
    return Response(status_code=204)


@router.get("")
def get_health(parts: PartsOf) -> Health:
    """Return the state of each part of the service."""
    with parts.database.read() as session:
        counts = jobs.count_by_state(session)
        alive = [s for s in workers.states(session) if s in {WorkerState.IDLE, WorkerState.BUSY}]
    trouble = parts.database.trouble()
    is_well = trouble is None and parts.is_coordinating()
    return Health(
        status="ok" if is_well else "degraded",
        version=_version(),
        checks={
            "database": trouble or "ok",
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
