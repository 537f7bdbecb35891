"""`/jobs`: submit, list and read jobs; their trials and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response, status
from pydantic import Field
from starlette.responses import StreamingResponse

from service.http.auth import SUBMIT, CallerOf, is_still_known
from service.http.dependencies import PartsOf
from service.http.event_feed import EventFeed
from service.http.problems import responses
from service.http.routes.queued import note_queued
from service.jobs.jobs import submit_job
from service.reading.lists import list_jobs
from service.reading.queries import JobsQuery, TrialsQuery
from service.reading.trial_list import list_trials
from service.store.jobs import events, jobs
from service.wire.models import JobRead, Page, TrialRead
from service.wire.requests import JobCreate

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses=responses(413, 422),
    dependencies=[SUBMIT],
)
def post_job(
    parts: PartsOf,
    caller: CallerOf,
    request: JobCreate,
    response: Response,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> JobRead:
    """Queue a tuning job; sent twice with the same `Idempotency-Key`, it is queued once."""
    job, is_new = submit_job(parts.database, request, idempotency_key, caller=caller)
    note_queued(parts, response, f"jobs/{job.id}", is_new)
    return job


@router.get("", responses=responses(422))
def get_jobs(parts: PartsOf, query: Annotated[JobsQuery, Query()]) -> Page[JobRead]:
    """List jobs, the newest first by default."""
    with parts.database.read() as session:
        return list_jobs(session, query)


@router.get("/{job_id}", responses=responses(404, 422))
def get_job(parts: PartsOf, job_id: UUID) -> JobRead:
    """Read a job."""
    with parts.database.read() as session:
        return jobs.read(jobs.get(session, job_id))


@router.get("/{job_id}/trials", responses=responses(404, 422))
def get_trials(
    parts: PartsOf, job_id: UUID, query: Annotated[TrialsQuery, Query()]
) -> Page[TrialRead]:
    """List a job's trials, by number by default."""
    with parts.database.read() as session:
        return list_trials(session, job_id, query)


_AFTER = Header(
    description="the id of the last received event; the stream continues after it. `now` returns "
    "only new events"
)
_EventId = Annotated[int, Field(ge=0, le=2**63 - 1)]


@dataclass(frozen=True)
class _Place:
    """The start of a stream."""

    job_id: UUID
    last_id: int


def _place(
    parts: PartsOf,
    job_id: UUID,
    last_event_id: Annotated[_EventId | Literal["now"], _AFTER] = 0,
) -> _Place:
    """Read the job before its stream begins, so that an unknown job still gets a status."""
    with parts.database.read() as session:
        jobs.get(session, job_id)
        # Events become visible in the order of their ids.
        last_id = events.newest_id(session) if last_event_id == "now" else last_event_id
    return _Place(job_id, last_id)


_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/event-stream": {
                "itemSchema": {
                    "type": "object",
                    "properties": {
                        "data": {"type": "string"},
                        "event": {"type": "string"},
                        "id": {"type": "string"},
                        "retry": {"type": "integer", "minimum": 0},
                    },
                }
            }
        }
    }
}


@router.get(
    "/{job_id}/events", response_class=Response, responses={**_STREAM, **responses(404, 422)}
)
async def get_events(
    request: Request, position: Annotated[_Place, Depends(_place)]
) -> StreamingResponse:
    """Stream a job's events until it ends; with `Last-Event-ID`, only later ones.

    A stream ends within two seconds after the revocation of its token.

    A stream lasts minutes and holds no thread. All streams of a process share one query for new
    events.
    """
    feed: EventFeed = request.app.state.feed
    return StreamingResponse(
        # Already encoded: FastAPI would encode each event again for each stream.
        feed.stream(position.job_id, position.last_id, is_still_known(request)),
        media_type="text/event-stream",
        headers={
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",  # else nginx buffers the events
        },
    )
