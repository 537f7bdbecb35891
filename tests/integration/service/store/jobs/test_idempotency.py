"""Submissions with an idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from service.common.errors import ServiceBusyError, UnprocessableError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake.text_reader import TextReader, reading_in_children
from service.jobs.jobs import submit_job
from service.store.database.database import Database
from service.store.jobs import idempotency
from service.wire.requests import JobCreate
from tests.service_fixtures import add_job, problem

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


STORED = [
    # By version 0.1, and by the version that added names, notes and tags: written out, so that no
    # later field changes them.
    '{"target":"cpu","max_trials":8,"max_secs":null,"plateau":null,"seed":0,'
    '"strategy":"evolutionary","rules":null,"warm_start":true,"priority":0,'
    '"workload":{"script":null,"operator":"matmul:16,16,16"}}',
    '{"name":null,"note":null,"tags":null,"target":"cpu","max_trials":8,"max_secs":null,'
    '"plateau":null,"seed":0,"strategy":"evolutionary","rules":null,"warm_start":true,"priority":0,'
    '"workload":{"script":null,"operator":"matmul:16,16,16"}}',
]


@pytest.mark.parametrize("stored", STORED)
def test_a_retry_after_an_upgrade_is_the_same_request(database: Database, stored: str) -> None:
    job_id = add_job(database)
    with database.write() as session:
        digest = hashlib.sha256(stored.encode()).hexdigest()
        idempotency.remember(session, None, "k1", digest, job_id)
    made, is_new = submit_job(database, JobCreate.model_validate(JOB), "k1")
    assert (made.id, is_new) == (job_id, False)
    for changed in ({"max_trials": 9}, {"name": "a"}):
        with pytest.raises(UnprocessableError, match="another request"):
            submit_job(database, JobCreate.model_validate({**JOB, **changed}), "k1")


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_has_a_length(client: TestClient, key: str) -> None:
    headers = {"Idempotency-Key": key}
    refused = problem(client.post("/jobs", json=JOB, headers=headers), 422)
    assert "1 to 255 characters" in refused["detail"]
