"""What Prometheus reads of a service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database))) as client:
        yield client


def value(client: TestClient, name: str, **labels: str) -> float | None:
    text = client.get("/metrics").text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def test_jobs_are_counted_by_state(client: TestClient) -> None:
    assert value(client, "loopwright_jobs", state="queued") == 0
    job = {"workload": {"operator": "relu:64"}, "max_trials": 4}
    for _ in range(2):
        assert client.post("/api/v1/jobs", json=job).status_code == 201
    assert value(client, "loopwright_jobs", state="queued") == 2
    assert value(client, "loopwright_jobs", state="failed") == 0
    assert value(client, "loopwright_trials") == 0


def test_requests_are_counted_by_route_and_not_by_path(client: TestClient) -> None:
    for number in range(3):
        client.get(f"/api/v1/jobs/{number}")
    client.get("/no/such/page")
    client.request("BREW", "/api/v1/jobs")
    name = "loopwright_http_request_seconds_count"
    assert value(client, name, route="/jobs/{job_id}", status="422") == 3
    assert value(client, name, route="other", method="GET") == 1
    assert value(client, name, method="other", status="405") == 1


def test_metrics_want_the_token_too(database: Database) -> None:
    with TestClient(create_app(Dependencies(database), token="secret")) as client:
        assert client.get("/metrics").status_code == 401
        headers = {"Authorization": "Bearer secret"}
        assert client.get("/metrics", headers=headers).status_code == 200
