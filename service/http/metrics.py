"""Metrics for Prometheus: requests of this process, and jobs and workers of the database."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.store import workers
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from service.wire.server_models import WorkerState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"


class Metrics:
    """The metrics of one application."""

    def __init__(self, database: Database) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Stored(database))
        self.requests = Histogram(
            "loopwright_http_request_seconds",
            "Seconds until the first byte of an answer.",
            ("method", "route", "status"),
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Stored(Collector):
    """Counts jobs, trials and workers in the database at each scrape."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[Metric]:
        """Yield the current counts."""
        with self._database.read() as session:
            states = jobs.count_by_state(session)
            present = workers.states(session)
            measured = session.scalar(select(func.coalesce(func.sum(JobRow.num_measured), 0)))
        yield _gauge("loopwright_jobs", "Jobs by state.", {s: states.get(s, 0) for s in JobState})
        yield _gauge(
            "loopwright_workers", "Workers by state.", {s: present.count(s) for s in WorkerState}
        )
        yield GaugeMetricFamily("loopwright_trials", "Stored trials.", value=float(measured or 0))


def _gauge(name: str, text: str, counts: dict[JobState, int] | dict[WorkerState, int]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=("state",))
    for state, count in counts.items():
        gauge.add_metric((state.value,), count)
    return gauge


class Timed:
    """Records the duration of each request by its route, without the prefix of the API."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and record its duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else _OTHER
                route = getattr(scope.get("route"), "path", _OTHER)
                labels = (method, route, str(message["status"]))
                self._metrics.requests.labels(*labels).observe(time.perf_counter() - start)
            await send(message)

        await self._app(scope, receive, noted)
