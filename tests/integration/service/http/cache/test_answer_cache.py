"""Answers about jobs, sent again until something changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import tokens
from service.store.database.database import Database
from service.store.jobs import jobs
from service.wire.server_models import Scope
from tests.integration.service.statements import statements
from tests.integration.service.tuned import SPEC, tuned


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


def test_an_answer_about_jobs_is_sent_once_more_until_something_changes(
    client: TestClient, database: Database
) -> None:
    job_id, _ = tuned(database, SPEC)
    for path in ("/jobs?limit=20", f"/jobs/{job_id}", f"/jobs/{job_id}/curve"):
        slow = client.get(path)
        with statements(database) as asked:
            fast = client.get(path)
        assert asked == []
        assert (fast.status_code, fast.content) == (slow.status_code, slow.content) != (200, b"")
        for headers in (slow.headers, fast.headers):
            headers.pop("x-request-id")
        assert fast.headers == slow.headers
    with database.write() as session:
        jobs.get(session, job_id).priority = 7
    assert client.get(f"/jobs/{job_id}").json()["priority"] == 7
    assert client.get("/jobs?limit=20").json()["items"][0]["priority"] == 7


def test_an_answer_that_was_kept_wants_a_token_as_the_route_does(database: Database) -> None:
    path = f"/jobs/{tuned(database, SPEC)[0]}"
    with database.write() as session:
        _, token = tokens.create(session, "reader", (Scope.READ,))
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        for _ in range(3):
            known = {"Authorization": f"Bearer {token}"}
            assert client.get(path, headers=known).status_code == 200
            assert client.get(path).status_code == 401
            wrong = {"Authorization": "Bearer nobody"}
            assert client.get(path, headers=wrong).status_code == 401
