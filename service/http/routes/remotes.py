"""`/remotes`: sessions with devices of workers, for kernels that clients built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response, status
from fastapi.concurrency import run_in_threadpool

from compiler.target.error import TargetError
from compiler.target.target import Target
from service.common.errors import ServiceBusyError, ServiceNotFoundError, UnprocessableError
from service.http.auth import SUBMIT, CallerOf
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.wire.remotes import RemoteCreate, RemoteCreated
from workers.engine.engine import (
    EngineStartError,
    NoSessionError,
    NoWorkerError,
    SessionEngine,
    SessionOverError,
)

router = APIRouter(prefix="/remotes", tags=["remotes"], dependencies=[SUBMIT])

MEDIA_TYPE = "application/octet-stream"
_MAX_STEPS = 8
"""Steps at a time: each holds a thread of this process until the worker has answered. Chosen."""
_RemoteId = Annotated[str, Path(max_length=1000)]
_steps = BoundedSemaphore(_MAX_STEPS)


@router.post("", status_code=status.HTTP_201_CREATED, responses=responses(403, 404, 422, 503))
def post_remote(parts: PartsOf, caller: CallerOf, request: RemoteCreate) -> RemoteCreated:
    """Open a session on a worker of a target. It ends after five minutes without a request."""
    sessions = _offered(parts.sessions)
    try:
        target = Target(request.target)
    except TargetError as error:
        raise UnprocessableError(str(error)) from error
    if target.kind != "cpu":
        raise UnprocessableError(f"remote sessions are on CPUs, not on {target.name}")
    with _step():
        return RemoteCreated(id=sessions.open_session(target.name, caller.name or ""))


@router.post(
    "/{remote_id}/frames",
    response_class=Response,
    responses={
        **responses(403, 404, 413, 503),
        200: {
            "description": "The frame that answers the request (`docs/remote_protocol.md`)",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def post_frame(
    parts: PartsOf, caller: CallerOf, request: Request, remote_id: _RemoteId
) -> Response:
    """Pass a request of a session to its device: one frame of the protocol."""
    sessions = _offered(parts.sessions)
    frame = await request.body()
    answer = await run_in_threadpool(_answered, sessions, remote_id, caller.name or "", frame)
    return Response(answer, media_type=MEDIA_TYPE)


@router.delete(
    "/{remote_id}",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
    responses=responses(403, 404, 503),
)
def delete_remote(parts: PartsOf, caller: CallerOf, remote_id: _RemoteId) -> None:
    """End a session, and release what its device holds."""
    sessions = _offered(parts.sessions)
    with _step():
        sessions.close_session(remote_id, caller.name or "")


def _answered(sessions: SessionEngine, name: str, owner: str, frame: bytes) -> bytes:
    with _step():
        return sessions.session_step(name, owner, frame)


def _offered(sessions: SessionEngine | None) -> SessionEngine:
    if sessions is None:
        raise HTTPException(
            status.HTTP_403_FORBIDDEN,
            "this server offers no remote sessions, in which clients run code of their own: its "
            "owner starts it with --remotes",
        )
    return sessions


@contextmanager
def _step() -> Iterator[None]:
    """Take one of the places for steps, and convert the errors of workers."""
    if not _steps.acquire(blocking=False):
        raise ServiceBusyError(f"{_MAX_STEPS} requests of remote sessions are in progress")
    try:
        yield
    except (SessionOverError, NoWorkerError) as error:
        raise ServiceNotFoundError(str(error)) from error
    except (NoSessionError, EngineStartError) as error:
        raise ServiceBusyError(str(error)) from error
    finally:
        _steps.release()
