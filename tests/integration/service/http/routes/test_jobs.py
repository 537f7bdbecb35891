"""The routes of jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from compiler.target.target import Target
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import workers
from service.store.database.database import Database
from tests.service_fixtures import problem
from workers.engine.engine import WorkerFacts

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.on_both_databases
def test_a_job_is_queued(client: TestClient) -> None:
    response = client.post("/jobs", json=JOB)
    assert response.status_code == 201
    job = response.json()
    assert (job["state"], job["workload_name"], job["max_trials"]) == ("queued", "matmul", 8)
    assert job["target"].startswith("cpu -mcpu=")
    assert response.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert client.get(f"/jobs/{job['id']}").json() == job


def test_a_job_for_cold_caches_names_them_in_its_target(client: TestClient) -> None:
    job = client.post("/jobs", json={**JOB, "target": "cpu -cache=cold -num-cores=1"}).json()
    assert job["target"] == Target("cpu -num-cores=1 -cache=cold").name
    assert job["target"].endswith(" -cache=cold")


def test_a_target_of_a_worker_that_is_or_was_there_is_taken(
    client: TestClient, database: Database
) -> None:
    """The kinds are refused, looked at and taken alike, alone and in groups."""
    target, wide = "cpu -mcpu=cortex-a72 -num-cores=4", "cpu -mcpu=cortex-a72 -num-cores=8"
    bodies: dict[str, dict[str, Any]] = {
        "/jobs": JOB,
        "/groups": {"tasks": [{"workload": JOB["workload"]}], "max_trials": 64},
        "/workloads/check": {"workload": JOB["workload"]},
    }

    def ask(target: str) -> list[Any]:
        return [client.post(at, json={**body, "target": target}) for at, body in bodies.items()]

    for answer in ask(target):
        refused = problem(answer, 422)
        assert refused["errors"][0]["pointer"] == "/target"
        assert "start `loopwright worker`" in refused["detail"]
        assert Target("cpu").label in refused["detail"]
    with database.write() as session:
        long_ago, facts = time.time() - 600, {"num_cores": 4}
        arm = WorkerFacts("b/b-0", "b", "cpu/cortex-a72", 1, False, long_ago, facts)
        workers.record_facts(session, [arm])
    assert [answer.status_code for answer in ask(target)] == [201, 201, 200]
    for answer in ask(wide):
        assert "cpu/cortex-a72 have 4 cores" in problem(answer, 422)["detail"]


def test_jobs_come_in_pages_newest_first(client: TestClient) -> None:
    ids = [client.post("/jobs", json=JOB).json()["id"] for _ in range(5)]
    seen: list[str] = []
    params: dict[str, str | int] = {"limit": 2}
    for expected in (2, 2, 1):
        page = client.get("/jobs", params=params).json()
        assert len(page["items"]) == expected
        seen += [job["id"] for job in page["items"]]
        params["cursor"] = page["next_cursor"]
    assert page["next_cursor"] is None
    assert seen == ids[::-1]


@pytest.mark.on_both_databases
def test_jobs_by_state(client: TestClient) -> None:
    ids = [client.post("/jobs", json=JOB).json()["id"] for _ in range(2)]
    assert client.post(f"/jobs/{ids[0]}/cancel").json()["state"] == "cancelled"
    queued = client.get("/jobs", params={"state": "queued"}).json()["items"]
    assert [job["id"] for job in queued] == ids[1:]


@pytest.mark.parametrize("limit", [0, 501, "x"])
def test_a_page_has_a_size(client: TestClient, limit: int | str) -> None:
    refused = problem(client.get("/jobs", params={"limit": limit}), 422)
    assert refused["errors"][0]["pointer"] == "query/limit"


@pytest.mark.on_both_databases
def test_events_of_a_job_that_ended_are_a_stream_that_ends(client: TestClient) -> None:
    job_id = client.post("/jobs", json=JOB).json()["id"]
    client.post(f"/jobs/{job_id}/cancel")
    response = client.get(f"/jobs/{job_id}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [block.splitlines() for block in response.text.strip().split("\n\n")]
    assert [block[0] for block in events] == ["event: state", "event: state"]
    ids = [line.removeprefix("id: ") for block in events for line in block if line[:3] == "id:"]
    assert '"cancelled"' in response.text

    resumed = client.get(f"/jobs/{job_id}/events", headers={"Last-Event-ID": ids[0]})
    assert f"id: {ids[1]}" in resumed.text
    assert f"id: {ids[0]}\n" not in resumed.text
    finished = client.get(f"/jobs/{job_id}/events", headers={"Last-Event-ID": ids[1]})
    assert finished.text == ""


def test_a_last_event_id_is_a_number(client: TestClient) -> None:
    job_id = client.post("/jobs", json=JOB).json()["id"]
    headers = {"Last-Event-ID": "yesterday"}
    problem(client.get(f"/jobs/{job_id}/events", headers=headers), 422)
