"""`/shapes`: one artifact for all sizes of ranges, tuned as jobs of a group."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response, status

from service.http.auth import SUBMIT, CallerOf
from service.http.conditional import has_it, quoted
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.http.routes.artifacts import MEDIA_TYPE, SIGNATURE_HEADER
from service.http.routes.queued import note_queued
from service.reading.queries import ShapesQuery
from service.shapes.artifact import plan_artifact
from service.shapes.reading import find, list_shapes
from service.shapes.submit import submit_shapes
from service.wire.models import Page
from service.wire.requests import ShapesCreate
from service.wire.shape_reads import ShapesRead, ShapesSummary

router = APIRouter(prefix="/shapes", tags=["shapes"])

SCHEDULE = "shapes"
"""The origin of the schedules of such an artifact, which its signature names."""


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses=responses(413, 422),
    dependencies=[SUBMIT],
)
def post_shapes(
    parts: PartsOf,
    caller: CallerOf,
    request: ShapesCreate,
    response: Response,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> ShapesRead:
    """Queue jobs for sizes spread over ranges; repeated with the same `Idempotency-Key`, once.

    The jobs share the trials: each size counts the same. When the last one ends, at most eight
    kernels of the symbolic program are chosen by their times at these and further sizes, and the
    dispatcher that calls them by size. Controls of the group act on all jobs.
    """
    made, is_new = submit_shapes(parts.database, request, idempotency_key, caller=caller)
    note_queued(parts, response, f"shapes/{made.id}", is_new)
    return made


@router.get("", responses=responses(422))
def get_shapes(parts: PartsOf, query: Annotated[ShapesQuery, Query()]) -> Page[ShapesSummary]:
    """List searches over ranges, the newest first by default."""
    with parts.database.read() as session:
        return list_shapes(session, query)


@router.get("/{shapes_id}", responses=responses(404, 422))
def get_one(parts: PartsOf, shapes_id: UUID) -> ShapesRead:
    """Read a search over ranges: its sizes, kernels and times, and the dispatcher."""
    with parts.database.read() as session:
        return find(session, shapes_id)


@router.post(
    "/{shapes_id}/artifact",
    response_class=Response,
    dependencies=[SUBMIT],
    responses={
        **responses(404, 422, 500),
        200: {
            "description": "The kernels with their dispatcher",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        304: {"model": None, "description": "The cached artifact is current"},
    },
)
def post_artifact(
    parts: PartsOf, shapes_id: UUID, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """Build the artifact of a search that has ended: one kernel for all sizes of its ranges."""
    with parts.database.read() as session:
        artifact = plan_artifact(session, shapes_id)
    headers = {"ETag": quoted(artifact.key)}
    if has_it(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    content = parts.builder.build_module(artifact.request)
    if parts.signer is not None:
        signature = parts.signer.sign(artifact.workload_key, SCHEDULE, content)
        headers[SIGNATURE_HEADER] = signature
    return Response(content, media_type=MEDIA_TYPE, headers=headers)
