"""Assemble the HTTP application."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, Depends, FastAPI

from loopwright.models import Problem
from service import problems
from service.auth import check_token, digest
from service.guard import BodyLimit, KnownHosts
from service.metrics import Metrics, Timed
from service.pages import Pages
from service.parts import Parts
from service.routes import (
    artifacts,
    cost_models,
    health,
    jobs,
    metrics,
    schedules,
    trials,
    workers,
)

PREFIX = "/api/v1"


def create_app(
    parts: Parts, *, token: str | None = None, hosts: Collection[str] | None = None
) -> FastAPI:
    """Return the application over its parts; tests hand it their own.

    Args:
        token: What clients must know; none lets everybody in who reaches the port.
        hosts: The names under which requests may come; none takes any.
    """
    app = FastAPI(
        title="Loopwright",
        summary="Submit tensor programs, watch them being tuned, fetch fast kernels.",
        openapi_url=f"{PREFIX}/openapi.json",
        # The pages of FastAPI load their scripts from a CDN.
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": Problem, "description": "A problem document"}},
    )
    app.state.parts = parts
    app.state.metrics = Metrics(parts.database)
    app.state.token_digest = None if token is None else digest(token)
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(check_token)])
    for module in (jobs, trials, schedules, artifacts, cost_models, workers, health):
        api.include_router(module.router)
    app.include_router(api)
    app.include_router(health.probes)
    app.include_router(metrics.router, dependencies=[Depends(check_token)])
    app.router.default = Pages(PREFIX)
    problems.install(app)
    app.add_middleware(BodyLimit)
    if hosts is not None:
        app.add_middleware(KnownHosts, names=hosts)
    app.add_middleware(Timed, metrics=app.state.metrics)
    return app
