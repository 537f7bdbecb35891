"""Submissions with an idempotency key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from service.common.errors import ServiceBusyError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake.text_reader import TextReader, reading_in_children
from service.jobs.jobs import submit_job
from service.store.database.database import Database
from service.wire.requests import JobCreate
from tests.service_fixtures import problem

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.on_both_databases
def test_the_same_submission_with_the_same_key_is_one_job(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    first, second = (client.post("/jobs", json=JOB, headers=headers) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert len(client.get("/jobs").json()["items"]) == 1


@pytest.mark.on_both_databases
def test_a_key_stands_for_one_request(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    client.post("/jobs", json=JOB, headers=headers)
    refused = problem(client.post("/jobs", json={**JOB, "max_trials": 9}, headers=headers), 422)
    assert "'k1' belongs to another request" in refused["detail"]


def test_a_repeated_submission_reads_no_program(database: Database) -> None:
    request = JobCreate.model_validate(JOB)
    made, _ = submit_job(database, request, "k1")
    with closing(TextReader(1, 0)) as reader, reading_in_children(reader, "one"):
        assert submit_job(database, request, "k1") == (made, False)
        # It reads that of a new key; the reader accepts none.
        with pytest.raises(ServiceBusyError):
            submit_job(database, request, "k2")


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_has_a_length(client: TestClient, key: str) -> None:
    headers = {"Idempotency-Key": key}
    refused = problem(client.post("/jobs", json=JOB, headers=headers), 422)
    assert "1 to 255 characters" in refused["detail"]
