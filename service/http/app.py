"""Assemble the HTTP application."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, FastAPI

from service.common.request_ids import RequestIds
from service.http import openapi, problems
from service.http.auth import READ, Tokens
from service.http.cache.answer_cache import AnswerCacheMiddleware
from service.http.cache.schedule_answers import ScheduleAnswers
from service.http.dependencies import Dependencies
from service.http.event_feed import EventFeed
from service.http.limits.content_types import ContentTypes
from service.http.limits.request_limits import (
    BodyLimit,
    KnownCallers,
    KnownHosts,
    PlainAddresses,
)
from service.http.limits.same_origin import SameOrigin
from service.http.limits.security_headers import SecurityHeaders
from service.http.metrics import Metrics, Timed
from service.http.pages import Pages
from service.http.rate_limit import DEFAULT_PER_SEC, RateLimit
from service.http.routes import (
    artifacts,
    cache,
    caller,
    controls,
    cost_models,
    groups,
    health,
    jobs,
    metrics,
    models,
    plots,
    records,
    remotes,
    schedules,
    shapes,
    targets,
    tokens,
    trials,
    workers,
    workloads,
)
from service.intake.text_reader import ReadInChildren
from service.store.database.data_version import DataVersion

PREFIX = "/api/v1"

_MODULES = (
    tokens,
    caller,
    jobs,
    controls,
    groups,
    models,
    shapes,
    trials,
    schedules,
    artifacts,
    cache,
    cost_models,
    workers,
    remotes,
    plots,
    workloads,
    targets,
    records,
    health,
)


def create_app(
    parts: Dependencies,
    *,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    requests_per_sec: float = DEFAULT_PER_SEC,
) -> FastAPI:
    """Return the application over its parts; tests pass their own.

    Args:
        token: An administrator token, besides the tokens of the database. If there is no token at
            all, every client is accepted.
        hosts: The accepted host names; empty accepts any.
        requests_per_sec: The limit of each token (or address without a token); 0 for no limit.
    """
    app = FastAPI(
        title="Loopwright",
        summary="Submit tensor programs for tuning, follow the jobs, and fetch fast kernels.",
        openapi_url=f"{PREFIX}/openapi.json",
        # FastAPI's own pages of documentation load their scripts from a CDN.
        docs_url=None,
        redoc_url=None,
    )
    app.state.parts = parts
    app.state.schedule_answers = ScheduleAnswers(parts.database)
    app.state.feed = EventFeed(parts.database, parts.is_stopping)
    app.state.metrics = Metrics(parts.database)
    app.state.tokens = Tokens(parts.database, token)
    app.state.rate_limit = RateLimit(requests_per_sec)
    _include_routes(app)
    app.router.default = Pages()
    problems.install(app)
    openapi.install(app)
    _add_middleware(app, parts, hosts)
    return app


def _include_routes(app: FastAPI) -> None:
    refusals = problems.responses(401, 403, 421, 429, 503)
    api = APIRouter(prefix=PREFIX, dependencies=[READ], responses=refusals)
    for module in _MODULES:
        api.include_router(module.router)
    app.include_router(api)
    app.include_router(health.probes)
    app.include_router(metrics.router, dependencies=[READ], responses=refusals)


def _add_middleware(app: FastAPI, parts: Dependencies, hosts: Collection[str] | None) -> None:
    """Add the middleware, the innermost first."""
    app.add_middleware(
        AnswerCacheMiddleware,
        prefix=PREFIX,
        version=DataVersion(parts.database),
        tokens=app.state.tokens,
        limit=app.state.rate_limit,
    )
    app.add_middleware(ReadInChildren, reader=parts.reader)
    app.add_middleware(KnownCallers, tokens=app.state.tokens)
    app.add_middleware(BodyLimit)
    app.add_middleware(ContentTypes)
    app.add_middleware(SameOrigin)
    if hosts is not None:
        app.add_middleware(KnownHosts, names=hosts)
    app.add_middleware(PlainAddresses)
    app.add_middleware(Timed, metrics=app.state.metrics)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestIds)
