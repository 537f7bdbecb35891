"""One id finds a request, its job, and what workers are asked for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from compiler.runtime.measurement import Measurement
from service.common import request_ids
from service.coordinator.coordinator import Coordinator
from service.coordinator.measurer import WorkerMeasurer
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.store.jobs import jobs
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

JOB = {
    "workload": {"operator": "matmul:32,32,32"},
    "max_trials": 4,
    "strategy": "random",
    "warm_start": False,
}
ID = "build-7/step-3"


class Workers:
    """Answers requests from a formula, and remembers under which ids they came."""

    def __init__(self) -> None:
        self.ids: set[str | None] = set()

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        self.ids.add(MeasureRequest.from_json(request.to_json()).request_id)
        for index in range(len(request.traces)):
            yield index, Measurement((1.0 + index,), worker="w")

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        self.ids.add(CompareRequest.from_json(request.to_json()).request_id)
        for _ in range(request.num_rounds):
            yield [
                Measurement((1.0 + index,), worker="w") for index in range(request.num_contestants)
            ]


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


def test_an_id_goes_from_the_request_to_the_workers(
    client: TestClient, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="service.requests")
    with capture_logs(processors=[merge_contextvars]) as lines:
        made = client.post("/jobs", json=JOB, headers={"X-Request-ID": ID})
        assert made.headers["x-request-id"] == ID
        client.get("/jobs", headers={"X-Request-ID": "another"})
        workers = Workers()
        assert Coordinator(
            database, WorkerMeasurer(workers, request_id=request_ids.current)
        ).run_one()
    with database.read() as session:
        assert jobs.get(session, UUID(made.json()["id"])).request_id == ID
    assert workers.ids == {ID}
    of_id = [line["event"] for line in lines if line.get("request_id") == ID]
    assert of_id[0] == "request"
    assert {"job claimed", "job left"} <= set(of_id)
    assert [line["request_id"] for line in lines if line.get("path") == "/api/v1/jobs"] == [
        ID,
        "another",
    ]


@pytest.mark.parametrize("given", [None, "", "x" * 65, "a b", "é"])
def test_a_request_without_a_sound_id_gets_one(client: TestClient, given: str | None) -> None:
    headers = [] if given is None else [(b"X-Request-ID", given.encode())]
    ids = [client.get("/jobs", headers=headers).headers["x-request-id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert all(len(found) == 32 for found in ids)


@pytest.mark.parametrize("path", ["/jobs", "/jobs?limit=0", "/nothing", "/openapi.json"])
def test_every_answer_says_what_browsers_may_do_with_it(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["x-request-id"]
