"""`/metrics`: metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.http.metrics import CONTENT_TYPE

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}},
)
def get_metrics(request: Request) -> Response:
    """Return metrics of requests, jobs, trials and workers for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)
