"""Reading what does not change is cheap: few queries, from the index, and none for who has it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, event, text

from compiler.runtime.measurement import Measurement
from service.http import event_feed
from service.http.app import create_app
from service.http.cache.schedule_answers import ScheduleAnswers
from service.http.dependencies import Dependencies
from service.http.event_feed import MAX_WAITING, EventFeed
from service.store import tokens
from service.store.database.database import Database
from service.store.jobs import events, jobs
from service.store.results.sql_store import SqlStore
from service.wire.models import Event, EventKind, JobState
from service.wire.server_models import Scope
from tests.integration.service.tuned import SPEC, task_of, tuned
from tests.service_fixtures import add_job
from tuner.trial import MeasuredTrial

PLOTS = ("curve", "columns", "selection", "summary", "decisions")


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


@contextmanager
def statements(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Collect what is asked of the trials, the jobs and so on."""
    found: list[tuple[str, Any]] = []

    def note(_: Connection, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.lstrip().startswith("SELECT") and "tokens" not in statement:
            found.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def plans(database: Database, asked: list[tuple[str, Any]]) -> list[str]:
    """Return how SQLite goes about each statement that reads trials alone."""
    found = []
    with database.engine.connect() as connection:
        for statement, parameters in asked:
            if statement.startswith("SELECT trials."):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                found.append("; ".join(row[-1] for row in rows))
    return found


def test_plots_read_the_index_alone_and_once(client: TestClient, database: Database) -> None:
    job_id, _ = tuned(database, SPEC)
    with statements(database) as asked:
        assert client.get(f"/jobs/{job_id}/curve").status_code == 200
    (plan,) = plans(database, asked)
    assert "USING COVERING INDEX ix_trials_narrow" in plan
    with statements(database) as asked:
        for plot in ("curve", "columns"):
            assert client.get(f"/jobs/{job_id}/{plot}").status_code == 200
    assert plans(database, asked) == []
    # The job, its libraries and its finals, for the columns: the curve was asked before.
    assert len(asked) == 3


@pytest.mark.parametrize("sort", ["number", "-number", "best_secs", "-best_secs"])
def test_a_page_of_trials_is_found_in_the_index_alone(
    client: TestClient, database: Database, sort: str
) -> None:
    job_id, _ = tuned(database, SPEC)
    params: dict[str, Any] = {"sort": sort, "outcome": ["ok", "timeout"], "limit": 2}
    with statements(database) as asked:
        assert len(client.get(f"/jobs/{job_id}/trials", params=params).json()["items"]) == 2
    find, read = plans(database, asked)
    assert "USING COVERING INDEX ix_trials_narrow" in find
    assert "SCAN" not in read


@pytest.mark.parametrize("plot", PLOTS)
def test_who_has_a_plot_is_told_so_until_there_are_more_trials(
    client: TestClient, database: Database, plot: str
) -> None:
    job_id, measured = tuned(database, SPEC)
    first = client.get(f"/jobs/{job_id}/{plot}")
    headers = {"If-None-Match": first.headers["etag"]}
    assert client.get(f"/jobs/{job_id}/{plot}", headers=headers).status_code == 304
    late = MeasuredTrial(len(measured) + 40, measured[1].candidate, Measurement((1e-9,)))
    with database.write() as session:
        session.execute(text("UPDATE trials SET candidate_key = 'x' WHERE number = 1"))
    SqlStore(database).add(str(job_id), task_of(SPEC), [late])
    second = client.get(f"/jobs/{job_id}/{plot}", headers=headers)
    assert second.status_code == 200
    assert second.json() != first.json()


def test_a_late_number_is_seen_too(client: TestClient, database: Database) -> None:
    job_id, measured = tuned(database, SPEC)
    with database.write() as session:
        session.execute(text("DELETE FROM trials WHERE number = 2"))
        jobs.get(session, job_id).num_measured -= 1
    path = f"/jobs/{job_id}/columns"
    assert 2 not in client.get(path).json()["number"]
    SqlStore(database).add(str(job_id), task_of(SPEC), [measured[2]])
    assert client.get(path).json()["number"] == list(range(len(measured)))


def test_plots_of_a_job_without_trials_are_empty(client: TestClient, database: Database) -> None:
    job_id = add_job(database)
    found = {plot: client.get(f"/jobs/{job_id}/{plot}").json() for plot in PLOTS}
    assert found["curve"]["number"] == found["columns"]["number"] == []
    assert (found["summary"]["num_trials"], found["decisions"]["sketch"]) == (0, None)


def test_a_sketch_that_no_trial_has_is_refused_with_those_there_are(
    client: TestClient, database: Database
) -> None:
    job_id, measured = tuned(database, SPEC)
    answer = client.get(f"/jobs/{job_id}/decisions", params={"sketch": "none"})
    assert answer.status_code == 422
    assert repr(measured[1].candidate.sketch) in answer.json()["detail"]


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


def ids_in(written: bytes) -> list[int]:
    lines = written.decode().splitlines()
    return [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]


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


async def listened(feed: EventFeed, job_id: UUID, last_id: int = 0) -> list[int]:
    return [n async for written in feed.stream(job_id, last_id) for n in ids_in(written)]


def tell(database: Database, job_id: UUID, number: int) -> None:
    for n in range(number):
        with database.write() as session:
            events.append(session, job_id, EventKind.TRIALS, {"num_measured": n})


def end(database: Database, job_id: UUID) -> None:
    with database.write() as session:
        job = jobs.get(session, job_id)
        job.state = JobState.CANCELLED
        jobs.record_state(session, job)


@pytest.mark.on_both_databases
def test_each_listener_gets_each_event_of_its_job_once(database: Database) -> None:
    ids = [add_job(database) for _ in range(2)]
    feed = EventFeed(database, lambda: False)

    def happen() -> None:
        for job_id in ids:
            tell(database, job_id, 20)
        for job_id in ids:
            end(database, job_id)

    async def main() -> list[list[int]]:
        writer = threading.Thread(target=happen)
        listeners = [asyncio.create_task(listened(feed, ids[n % 2])) for n in range(8)]
        await asyncio.sleep(0)
        writer.start()
        return list(await asyncio.gather(*listeners))

    found = asyncio.run(main())
    for number, seen in enumerate(found):
        with database.read() as session:
            assert seen == [event.id for event in events.after(session, ids[number % 2], 0)]


def test_a_listener_that_is_behind_misses_nothing(database: Database) -> None:
    job_id = add_job(database)
    feed = EventFeed(database, lambda: False)

    async def main() -> list[int]:
        stream = feed.stream(job_id, 0)
        found = ids_in(await anext(stream))
        waiting = asyncio.ensure_future(anext(stream))
        while not waiting.done():
            await asyncio.to_thread(tell, database, job_id, 1)
        found += ids_in(waiting.result())
        await asyncio.to_thread(tell, database, job_id, MAX_WAITING + 50)
        await asyncio.to_thread(end, database, job_id)
        (listener,) = feed._listeners[job_id]
        while not listener.is_behind:
            await asyncio.sleep(0.01)
        return found + [n async for written in stream for n in ids_in(written)]

    found = asyncio.run(main())
    with database.read() as session:
        every = [e.id for e in events.after(session, job_id, 0, limit=10_000)]
    assert found == every


def test_an_event_is_written_once_for_all_streams(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = add_job(database)
    feed = EventFeed(database, lambda: False)
    written: list[int] = []
    write = event_feed._written

    def noted(event: Event) -> bytes:
        written.append(event.id)
        return write(event)

    async def main() -> list[list[int]]:
        streams = [asyncio.create_task(listened(feed, job_id)) for _ in range(5)]
        await asyncio.sleep(1.5)
        monkeypatch.setattr(event_feed, "_written", noted)
        await asyncio.to_thread(tell, database, job_id, 20)
        await asyncio.to_thread(end, database, job_id)
        return list(await asyncio.gather(*streams))

    first, *others = asyncio.run(main())
    assert all(seen == first for seen in others)
    assert written == first[-21:]


def test_streams_that_wait_ask_nothing_of_a_database_at_rest(database: Database) -> None:
    job_id = add_job(database)
    is_stopping = False
    feed = EventFeed(database, lambda: is_stopping)

    async def main() -> int:
        nonlocal is_stopping
        streams = [asyncio.create_task(listened(feed, job_id)) for _ in range(5)]
        await asyncio.sleep(1.5)
        with statements(database) as asked:
            await asyncio.sleep(1.0)
        is_stopping = True
        await asyncio.gather(*streams)
        return len(asked)

    assert asyncio.run(main()) == 0
