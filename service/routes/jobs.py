"""`/jobs`: submit, list and read jobs; their trials and events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import anyio
from fastapi import APIRouter, Depends, Header, Query, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from loopwright.models import (
    Event,
    EventKind,
    JobCreate,
    JobRead,
    JobState,
    Page,
    TrialRead,
)
from service.auth import SUBMIT, CallerOf
from service.jobs import submit_job
from service.parts import Parts, PartsOf
from service.problems import responses
from service.reading.lists import list_jobs
from service.reading.queries import JobsQuery, TrialsQuery
from service.reading.trial_list import list_trials
from service.store import events, jobs

router = APIRouter(prefix="/jobs", tags=["jobs"])

_POLL_SECS = 0.25


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
    job, is_new = submit_job(parts.database, request, idempotency_key, owner=caller.name)
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    if is_new:
        parts.wake()
    else:
        response.headers["Idempotent-Replayed"] = "true"
    return job


@router.get("", responses=responses(422))
def get_jobs(parts: PartsOf, query: Annotated[JobsQuery, Query()]) -> Page[JobRead]:
    """List jobs, the newest first unless another order is asked for."""
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
    """List a job's trials, by number unless another order is asked for."""
    with parts.database.read() as session:
        return list_trials(session, job_id, query)


def _existing(parts: PartsOf, job_id: UUID) -> UUID:
    """Refuse an unknown job before a stream begins, while there is still a status to send."""
    with parts.database.read() as session:
        return jobs.get(session, job_id).id


@router.get("/{job_id}/events", response_class=EventSourceResponse, responses=responses(404, 422))
async def get_events(
    parts: PartsOf,
    job_id: Annotated[UUID, Depends(_existing)],
    last_event_id: Annotated[int, Header(ge=0, le=2**63 - 1)] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Stream a job's events until it ends, those after `Last-Event-ID` if that is given.

    This endpoint alone is asynchronous: a stream lives for minutes and would hold a thread.
    """
    while not parts.is_stopping():
        found = await run_in_threadpool(_events_after, parts, job_id, last_event_id)
        for event in found:
            last_event_id = event.id
            yield ServerSentEvent(data=event, event=event.kind, id=str(event.id))
        # A client that saw the last event already and asks again is told by the end of the stream;
        # a job that went on after an end has more than one end.
        if not found or _is_end(found[-1]):
            if await run_in_threadpool(_has_ended, parts, job_id, last_event_id):
                return
            await anyio.sleep(_POLL_SECS)


def _events_after(parts: Parts, job_id: UUID, last_id: int) -> list[Event]:
    with parts.database.read() as session:
        return events.after(session, job_id, last_id)


def _has_ended(parts: Parts, job_id: UUID, last_id: int) -> bool:
    with parts.database.read() as session:
        is_final = jobs.get(session, job_id).state.is_final
        return is_final and not events.after(session, job_id, last_id, limit=1)


def _is_end(event: Event) -> bool:
    return event.kind == EventKind.STATE and JobState(str(event.payload["state"])).is_final
