"""Answers about the best schedule, from a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from compiler.runtime.measurement import Measurement
from service.http.app import create_app
from service.http.cache.schedule_answers import ScheduleAnswer, ScheduleAnswers
from service.http.dependencies import Dependencies
from service.store import tokens
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.results.sql_store import SqlStore
from service.wire.server_models import Scope
from tests.integration.service.statements import statements
from tests.integration.service.tuned import SPEC, task_of, tuned
from tuner.trial import MeasuredTrial


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


def lookup(database: Database, job_id: UUID) -> dict[str, str]:
    with database.read() as session:
        job = jobs.get(session, job_id)
        return {"workload_key": job.workload_key, "target": job.target}


def test_the_cache_answers_as_the_route_of_schedules_does(
    client: TestClient, database: Database
) -> None:
    params = lookup(database, tuned(database, SPEC)[0])
    slow = client.get("/schedules/best", params=params)
    with statements(database) as asked:
        fast = client.get("/schedules/best", params=params)
        known = client.get(
            "/schedules/best", params=params, headers={"If-None-Match": fast.headers["etag"]}
        )
    assert asked == []
    assert (fast.status_code, fast.content) == (slow.status_code, slow.content) != (200, b"")
    for headers in (slow.headers, fast.headers):
        headers.pop("x-request-id")
    assert fast.headers == slow.headers
    assert (known.status_code, known.content) == (304, b"")


def test_the_answer_to_a_conditional_request_is_cached(
    client: TestClient, database: Database
) -> None:
    params = lookup(database, tuned(database, SPEC)[0])
    other = client.get("/schedules/best", params=params, headers={"If-None-Match": '"other"'})
    with statements(database) as asked:
        same = client.get("/schedules/best", params=params)
    assert asked == []
    assert (same.status_code, same.content) == (other.status_code, other.content) != (200, b"")
    with database.write() as session:
        session.execute(text("UPDATE best_schedules SET updated_at = '2027-01-01'"))
    etag = same.headers["etag"]
    for _ in range(2):  # from the route, and from the cache
        known = client.get("/schedules/best", params=params, headers={"If-None-Match": etag})
        assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", etag)
    assert client.get("/schedules/best", params=params).content == same.content


@pytest.mark.on_both_databases
def test_a_change_of_something_else_costs_a_look_up_one_statement(
    client: TestClient, database: Database
) -> None:
    params = lookup(database, tuned(database, SPEC)[0])
    before = client.get("/schedules/best", params=params)
    for _ in range(2):
        with database.write() as session:
            session.execute(text("UPDATE jobs SET priority = priority + 1"))
        with statements(database) as asked:
            after = client.get("/schedules/best", params=params)
            known = {"If-None-Match": before.headers["etag"]}
            assert client.get("/schedules/best", params=params, headers=known).status_code == 304
        assert after.content == before.content
        num_lookups = 1 if database.engine.dialect.name == "sqlite" else 2
        assert len(asked) == num_lookups  # SQLite's version answers the second one


@pytest.mark.on_both_databases
def test_a_better_schedule_is_seen_at_once(client: TestClient, database: Database) -> None:
    job_id, measured = tuned(database, SPEC)
    params = lookup(database, job_id)
    for _ in range(3):
        before = client.get("/schedules/best", params=params)
    with database.write() as session:
        session.execute(text("DELETE FROM trials WHERE number = 3"))
    faster = MeasuredTrial(3, measured[3].candidate, Measurement((1e-6,)))
    SqlStore(database).add(str(job_id), task_of(SPEC), [faster])
    after = client.get("/schedules/best", params=params)
    assert (after.json()["run_secs"], after.json()["trial_number"]) == (1e-6, 3)
    assert after.headers["etag"] != before.headers["etag"]
    with database.write() as session:
        session.execute(
            text("UPDATE best_schedules SET run_secs = 2e-6, updated_at = '2027-01-01'")
        )
    again = client.get("/schedules/best", params=params)
    assert again.json()["run_secs"] == 2e-6
    assert again.headers["etag"] != after.headers["etag"]


def test_a_schedule_is_read_again_only_when_its_row_changes(database: Database) -> None:
    first, other = (
        lookup(database, tuned(database, spec)[0]) for spec in (SPEC, "matmul:16,16,16")
    )
    answers = ScheduleAnswers(database, max_answers=1)

    def num_statements(params: dict[str, str]) -> int:
        with statements(database) as executed:
            answers.find(params["workload_key"], params["target"], nearest=False)
        return len(executed)

    complete = num_statements(first)
    assert num_statements(first) < complete  # the look at its row
    num_statements(other)  # which takes its place
    assert num_statements(first) == complete


def test_concurrent_look_ups_that_miss_share_their_statements(database: Database) -> None:
    looked_up = [lookup(database, tuned(database, spec)[0]) for spec in (SPEC, "matmul:16,16,16")]

    async def find(answers: ScheduleAnswers, some: list[dict[str, str]]) -> list[ScheduleAnswer]:
        finds = (
            answers.find_shared(params["workload_key"], params["target"], nearest=False)
            for params in some
        )
        return await asyncio.gather(*finds)

    with statements(database) as of_one:
        [first] = asyncio.run(find(ScheduleAnswers(database), looked_up[:1]))
    with statements(database) as of_both:
        both = asyncio.run(find(ScheduleAnswers(database), [*looked_up, *looked_up]))
    assert len(of_both) == len(of_one) > 0
    assert [answer.body for answer in both[:2]] == [answer.body for answer in both[2:]]
    assert both[0].etag == first.etag != both[1].etag


@pytest.mark.on_both_databases
def test_the_cache_requires_a_token_as_the_route_of_schedules_does(database: Database) -> None:
    params = lookup(database, tuned(database, SPEC)[0])
    with database.write() as session:
        _, token = tokens.create(session, "reader", (Scope.READ,))
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1") as client:
        known = {"Authorization": f"Bearer {token}"}
        for _ in range(3):
            assert client.get("/schedules/best", params=params, headers=known).status_code == 200
            assert client.get("/schedules/best", params=params).status_code == 401
            wrong = {"Authorization": "Bearer nobody"}
            assert client.get("/schedules/best", params=params, headers=wrong).status_code == 401
