"""The application: who may call, health, and its description of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.service_fixtures import problem

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def test_a_token_is_asked_for(database: Database) -> None:
    app = create_app(Dependencies(database), token="s3cret")
    with TestClient(app, base_url="http://test") as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            response = client.get("/api/v1/jobs", headers=headers)
            problem(response, 401)
            assert response.headers["www-authenticate"].startswith("Bearer")
        right = {"Authorization": "Bearer s3cret"}
        assert client.get("/api/v1/jobs", headers=right).status_code == 200
        assert client.get("/livez").status_code == 204
        assert client.get("/readyz").status_code == 204


def test_a_request_under_a_strange_name_is_refused(database: Database) -> None:
    app = create_app(Dependencies(database), hosts={"localhost", "127.0.0.1", "[::1]"})
    with TestClient(app, base_url="http://test") as client:
        problem(client.get("/api/v1/jobs", headers={"Host": "evil.example:8080"}), 421)
        for host in ("localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]"):
            assert client.get("/api/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.on_both_databases
def test_health_says_what_is_wrong(client: TestClient) -> None:
    client.post("/jobs", json=JOB)
    health = client.get("/health").json()
    assert health["status"] == "degraded"
    assert health["checks"] == {"database": "ok", "coordinator": "not running"}
    assert (health["num_queued"], health["num_running"], health["num_workers"]) == (1, 0, 0)


@pytest.mark.on_both_databases
def test_without_a_finished_job_there_is_no_cost_model(client: TestClient) -> None:
    assert client.get("/cost-models").json() == {"items": [], "next_cursor": None}
    assert client.get("/cost-models?limit=0").status_code == 422


def test_the_api_describes_itself(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) >= {
        "/api/v1/jobs",
        "/api/v1/jobs/{job_id}",
        "/api/v1/jobs/{job_id}/cancel",
        "/api/v1/jobs/{job_id}/trials",
        "/api/v1/jobs/{job_id}/events",
        "/api/v1/schedules/best",
        "/api/v1/artifacts",
        "/api/v1/cost-models",
        "/api/v1/workers",
        "/api/v1/health",
        "/livez",
        "/readyz",
    }
    assert "Problem" in described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary"), (method, path)
            content = operation["responses"].get("422", {}).get("content", {})
            assert set(content) <= {"application/problem+json"}, (method, path)
