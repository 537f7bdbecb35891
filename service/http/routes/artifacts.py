"""`/artifacts`: the compiled kernel of the best schedule."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response

from service.http.auth import SUBMIT, CallerOf
from service.http.conditional import has_it, quoted
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.http.routes.enqueued import enqueued
from service.schedules.schedules import fetch_kernel, plan_kernel
from service.wire.requests import ScheduleQuery

router = APIRouter(prefix="/artifacts", tags=["artifacts"])

MEDIA_TYPE = "application/octet-stream"
SCHEDULE_HEADER = "Loopwright-Schedule"
SIGNATURE_HEADER = "Loopwright-Signature"


@router.post(
    "",
    response_class=Response,
    dependencies=[SUBMIT],
    responses={
        **responses(404, 413, 422, 500),
        200: {
            "description": f"The kernel; `{SCHEDULE_HEADER}` says if its schedule was measured "
            "(`best`), is that of the `nearest` shape, adapted, or is the `default`",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        304: {"model": None, "description": "The cached kernel is current"},
    },
)
def post_artifact(
    parts: PartsOf,
    caller: CallerOf,
    query: ScheduleQuery,
    fallback: bool = False,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Build the kernel of the best schedule; with `fallback`, else of the default schedule."""
    with enqueued(parts, caller, query) as headers:
        kernel = plan_kernel(parts.database, query, fallback=fallback)
    etag = quoted(kernel.key)
    headers |= {"ETag": etag, SCHEDULE_HEADER: kernel.schedule}
    if has_it(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    content = fetch_kernel(parts.database, parts.builder, kernel)
    if parts.signer is not None:
        signature = parts.signer.sign(kernel.workload.key, kernel.schedule, content)
        headers[SIGNATURE_HEADER] = signature
    return Response(content, media_type=MEDIA_TYPE, headers=headers)
