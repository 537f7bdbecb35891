"""What a web page of another origin can have its visitor's browser do: nothing that changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.store.jobs import jobs
from tests.fuzz_requests.known_requests import known_requests
from tests.service_fixtures import add_job, problem

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}
HOST = "127.0.0.1:8080"


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url=f"http://{HOST}") as client:
        yield client


def num_jobs(database: Database) -> int:
    with database.read() as session:
        return len(jobs.newest(session, limit=10))


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of the same host
        {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{HOST}"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},  # a sandboxed frame, or a file
        {"Origin": "http://[::1"},
    ],
)
def test_a_change_for_a_foreign_page_is_refused(
    database: Database, client: TestClient, headers: dict[str, str]
) -> None:
    job_id = add_job(database)
    changes: list[tuple[str, str, Any]] = [
        ("POST", "/api/v1/jobs", JOB),
        ("POST", f"/api/v1/jobs/{job_id}/cancel", None),
        ("PATCH", f"/api/v1/jobs/{job_id}", {"priority": 3}),
        ("POST", "/api/v1/tokens", {"name": "mine", "scopes": ["admin"]}),
        ("DELETE", f"/api/v1/tokens/{job_id}", None),
        ("POST", "/api/v1/import", None),
    ]
    for method, path, body in changes:
        refused = problem(client.request(method, path, json=body, headers=headers), 403)
        assert refused["type"].endswith(":cross-origin")
    assert num_jobs(database) == 1
    with database.read() as session:
        assert not jobs.get(session, job_id).cancel_requested


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"},
        {"Origin": f"http://{HOST}"},
        {"Origin": f"https://{HOST}"},  # a proxy with TLS before the service
        # A proxy may change the host; no page can set `Sec-Fetch-Site`.
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://tuning.example"},
    ],
)
def test_a_change_by_a_program_or_the_dashboard_is_made(
    database: Database, client: TestClient, headers: dict[str, str]
) -> None:
    assert client.post("/api/v1/jobs", json=JOB, headers=headers).status_code == 201
    assert num_jobs(database) == 1


def test_a_preflight_allows_nothing(client: TestClient) -> None:
    asked = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    for path in ("/api/v1/jobs", "/api/v1/import", "/"):
        answer = client.options(path, headers=asked)
        problem(answer, 403)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_records_in_the_types_that_a_form_can_send_are_refused(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {"Content-Type": kind}
        answer = client.post("/api/v1/import", content=b"{}\n", headers=headers)
        assert "application/x-ndjson" in problem(answer, 415)["detail"]


def test_no_get_changes_anything(database: Database, database_file: Path) -> None:
    gets = [one for one in known_requests(database) if one.method == b"GET"]
    with (
        closing(sqlite3.connect(database_file)) as connection,
        TestClient(create_app(Dependencies(database, is_stopping=lambda: True))) as client,
    ):
        before = list(connection.iterdump())
        statuses = [client.get(one.target.decode()).status_code for one in gets]
        assert statuses.count(200) > len(gets) // 2
        assert list(connection.iterdump()) == before
