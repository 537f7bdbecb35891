"""`/export` and `/import`: jobs with all their measurements, as lines of JSON."""

from __future__ import annotations

import tempfile
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from compiler.target.error import TargetError
from compiler.target.target import Target
from service.http.auth import ADMIN
from service.http.dependencies import PartsOf
from service.http.limits.content_types import RECORDS
from service.http.problems import responses
from service.records.check import lines_of
from service.records.merge import import_records
from service.records.write import Selection, check, export
from service.wire.server_models import ImportRead

router = APIRouter(tags=["records"])

MEDIA_TYPE = RECORDS[0]
_IN_MEMORY_BYTES = 4 << 20
"""A larger file is written to disk on arrival. Chosen."""


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        **responses(404, 422),
        200: {
            "description": "A file of records: a header, workloads, jobs with their trials and "
            "finals, an end; one JSON object a line",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
    },
)
def get_export(
    parts: PartsOf,
    job: Annotated[tuple[UUID, ...], Query(max_length=100)] = (),
    workload_key: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
    target: Annotated[str | None, Query(min_length=1, max_length=1000)] = None,
) -> StreamingResponse:
    """Export jobs with all their measurements: all, selected ones, or by workload or target."""
    selection = Selection(job, workload_key, None if target is None else _canonical(target))
    check(parts.database, selection)
    return StreamingResponse(
        export(parts.database, selection),
        media_type=MEDIA_TYPE,
        headers={"Content-Disposition": 'attachment; filename="records.jsonl"'},
    )


@router.post(
    "/import",
    dependencies=[ADMIN],
    responses=responses(413, 422),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
async def post_import(parts: PartsOf, request: Request) -> ImportRead:
    """Add the records of a file: all of them, or none if a line is invalid.

    Existing records do not change, so sending a file twice is safe.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
        async for chunk in request.stream():
            file.write(chunk)
        return await run_in_threadpool(import_records, parts.database, lines_of(file))


def _canonical(target: str) -> str:
    """Return the text of a target in the store; an unknown target keeps its text."""
    try:
        return Target(target).name
    except TargetError:
        return target
