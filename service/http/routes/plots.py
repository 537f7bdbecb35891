"""`/jobs/{id}/curve`, `columns`, `selection`, `summary`, `decisions`: the data of a job's plots.

Trials never change, so their number identifies an answer: a client that has it gets a 304.
"""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel

from service.http.conditional import NOT_MODIFIED, has_it, quoted
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.reading.queries import ColumnsQuery, CurveQuery, SelectionQuery
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.wire.readings import Columns, Curve, Decisions, Summary

router = APIRouter(prefix="/jobs/{job_id}", tags=["plots"])

IfNoneMatch = Annotated[str | None, Header(max_length=1000)]
_RESPONSES = {**responses(404, 422), **NOT_MODIFIED}


@router.get("/curve", response_model=Curve, responses=_RESPONSES)
def get_curve(
    parts: PartsOf,
    job_id: UUID,
    query: Annotated[CurveQuery, Query()],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read the improvements of a job's best time."""
    with parts.database.read() as session:
        job = jobs.get(session, job_id)
        if (unchanged := _not_modified(job, if_none_match)) is not None:
            return unchanged
        return _answer(parts.plots.curve(session, job, query.points), job)


@router.get("/columns", response_model=Columns, responses=_RESPONSES)
def get_columns(
    parts: PartsOf,
    job_id: UUID,
    query: Annotated[ColumnsQuery, Query()],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read a job's trials as columns, thinned if there are more than `points`."""
    with parts.database.read() as session:
        job = jobs.get(session, job_id)
        if (unchanged := _not_modified(job, if_none_match)) is not None:
            return unchanged
        return _answer(parts.plots.columns(session, job, query), job)


@router.get("/selection", response_model=Columns, responses=_RESPONSES)
def get_selection(
    parts: PartsOf,
    job_id: UUID,
    query: Annotated[SelectionQuery, Query()],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read part of the trials that meet conditions, in order; `num_trials` counts them all."""
    with parts.database.read() as session:
        job = jobs.get(session, job_id)
        if (unchanged := _not_modified(job, if_none_match)) is not None:
            return unchanged
        return _answer(parts.plots.selection(session, job, query), job)


@router.get("/summary", response_model=Summary, responses=_RESPONSES)
def get_summary(parts: PartsOf, job_id: UUID, if_none_match: IfNoneMatch = None) -> Response:
    """Read a job's statistics: failures by kind, sketches, time, the benefit of the cost model."""
    with parts.database.read() as session:
        job = jobs.get(session, job_id)
        if (unchanged := _not_modified(job, if_none_match)) is not None:
            return unchanged
        return _answer(parts.plots.summary(session, job), job)


@router.get("/decisions", response_model=Decisions, responses=_RESPONSES)
def get_decisions(
    parts: PartsOf,
    job_id: UUID,
    sketch: Annotated[
        str | None, Query(max_length=255, description="default: the sketch with most trials")
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read the decisions of a sketch's trials, and the importance of each decision."""
    with parts.database.read() as session:
        job = jobs.get(session, job_id)
        if (unchanged := _not_modified(job, if_none_match)) is not None:
            return unchanged
        return _answer(parts.plots.decisions(session, job, sketch), job)


def _not_modified(job: JobRow, if_none_match: str | None) -> Response | None:
    etag = _etag(job)
    return (
        Response(status_code=304, headers={"ETag": etag}) if has_it(if_none_match, etag) else None
    )


def _etag(job: JobRow) -> str:
    return quoted(f"{job.num_measured}.{job.state}.{job.active_secs}")


def _answer(answer: BaseModel, job: JobRow) -> Response:
    # Encoded here: FastAPI would validate all the numbers again.
    return Response(
        answer.model_dump_json(),
        media_type="application/json",
        headers={"ETag": _etag(job), "Cache-Control": "no-cache"},
    )
