"""Jobs that are queued where a schedule is asked for and not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.jobs.enqueue import PRIORITY
from service.store import tokens
from service.store.database.database import Database
from service.store.jobs import controls, jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from service.wire.server_models import Scope
from tests.integration.service.tuned import task_of, tuned
from tests.service_fixtures import problem

TARGET = "cpu -num-cores=1"
ASKED = "matmul:40,56,96"
NEAR = "matmul:40,56,48"
QUERY: dict[str, Any] = {
    "workload": {"operator": ASKED},
    "target": TARGET,
    "enqueue": True,
}

pytestmark = pytest.mark.on_both_databases


@pytest.fixture
def wakes() -> list[None]:
    return []


@pytest.fixture
def client(database: Database, wakes: list[None]) -> Iterator[TestClient]:
    app = create_app(Dependencies(database, wake=lambda: wakes.append(None)))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def every_job(database: Database) -> list[JobRow]:
    with database.read() as session:
        return jobs.newest(session, limit=10)


def by_text(client: TestClient) -> Any:
    return client.post("/schedules/best", json=QUERY)


def by_key(client: TestClient) -> Any:
    asked = {"workload_key": task_of(ASKED).workload_key, "target": TARGET}
    return client.get("/schedules/best", params=asked)


def kernel(client: TestClient) -> Any:
    return client.post("/artifacts", json=QUERY)


def test_a_miss_queues_one_job_however_often(
    database: Database, client: TestClient, wakes: list[None]
) -> None:
    first = problem(by_text(client), 404)
    (job,) = every_job(database)
    assert (job.state, job.priority, job.owner) == (JobState.QUEUED, PRIORITY, None)
    assert job.workload_key == task_of(ASKED).workload_key
    assert first["job_id"] == str(job.id)
    assert first["detail"].endswith(f"; job {job.id} was queued")
    assert "submit a job" not in first["detail"], "it was done"
    for ask in (by_text, kernel):
        again = problem(ask(client), 404)
        assert again["job_id"] == str(job.id)
        assert again["detail"].endswith(f"job {job.id} is already queued")
    assert len(every_job(database)) == len(wakes) == 1


def test_those_who_ask_at_once_get_the_same_job(database: Database, client: TestClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: by_text(client), range(8)))
    assert len({problem(answer, 404)["job_id"] for answer in answers}) == 1
    assert len(every_job(database)) == 1


def test_without_being_asked_for_no_job_is_queued(database: Database, client: TestClient) -> None:
    refused = problem(client.post("/schedules/best", json={**QUERY, "enqueue": False}), 404)
    assert "job_id" not in refused
    assert every_job(database) == []


def test_what_is_known_needs_no_job(database: Database, client: TestClient) -> None:
    job_id, _ = tuned(database, ASKED)
    for ask in (by_text, by_key, kernel):
        answer = ask(client)
        assert answer.status_code == 200, answer.text
        assert "loopwright-job" not in answer.headers
    assert [job.id for job in every_job(database)] == [job_id]


def test_one_of_another_shape_does_until_the_job_has_run(
    database: Database, client: TestClient
) -> None:
    tuned(database, NEAR)
    answer = client.post("/schedules/best", json={**QUERY, "nearest": True})
    assert answer.status_code == 200
    assert answer.json()["nearest"]["workload_key"] == task_of(NEAR).workload_key
    (job,) = (j for j in every_job(database) if j.workload_key == task_of(ASKED).workload_key)
    assert answer.headers["loopwright-job"] == str(job.id)


def test_a_default_kernel_does_until_the_job_has_run(
    database: Database, client: TestClient
) -> None:
    answer = client.post("/artifacts", params={"fallback": True}, json=QUERY)
    assert answer.status_code == 200
    (job,) = every_job(database)
    assert answer.headers["loopwright-job"] == str(job.id)
    assert answer.headers["loopwright-schedule"] == "default"


def failed(database: Database, job_id: UUID) -> None:
    with database.write() as session:
        job = jobs.get(session, job_id)
        job.state, job.error = JobState.FAILED, "none of 16 trials is correct"


def cancelled(database: Database, job_id: UUID) -> None:
    with database.write() as session:
        controls.cancel(session, job_id)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (failed, "found no schedule: none of 16 trials is correct"),
        (cancelled, "was cancelled: resume it"),
    ],
)
def test_a_job_that_ended_in_vain_is_not_repeated(
    database: Database,
    client: TestClient,
    end: Callable[[Database, UUID], None],
    words: str,
) -> None:
    job_id = problem(by_text(client), 404)["job_id"]
    end(database, UUID(job_id))
    refused = problem(by_text(client), 404)
    assert refused["job_id"] == job_id
    assert refused["detail"].endswith(words)
    assert len(every_job(database)) == 1


def test_a_get_queues_nothing_and_names_the_post(database: Database, client: TestClient) -> None:
    asked = {"workload_key": task_of(ASKED).workload_key, "target": TARGET}
    for is_known in (False, True):
        refused = problem(client.get("/schedules/best", params={**asked, "enqueue": True}), 422)
        assert "POST /api/v1/schedules/best" in refused["detail"]
        assert refused["errors"][0]["pointer"] == "query/enqueue"
        assert len(every_job(database)) == is_known
        if not is_known:
            tuned(database, ASKED)
            assert by_key(client).status_code == 200


def test_who_may_only_read_queues_nothing(database: Database, client: TestClient) -> None:
    with database.write() as session:
        texts = {scope: tokens.create(session, scope.value, [scope])[1] for scope in Scope}
    reader = {"Authorization": f"Bearer {texts[Scope.READ]}"}
    assert (
        "'submit'"
        in problem(client.post("/schedules/best", json=QUERY, headers=reader), 403)["detail"]
    )
    assert every_job(database) == []
    submitter = {"Authorization": f"Bearer {texts[Scope.SUBMIT]}"}
    problem(client.post("/schedules/best", json=QUERY, headers=submitter), 404)
    assert [job.owner for job in every_job(database)] == ["submit"]
