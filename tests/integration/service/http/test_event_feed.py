"""Streams of events, read once for all listeners."""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import pytest

from service.http import event_feed
from service.http.event_feed import MAX_WAITING, EventFeed
from service.store.database.database import Database
from service.store.jobs import events, jobs
from service.wire.models import Event, EventKind, JobState
from tests.integration.service.statements import statements
from tests.service_fixtures import add_job


def ids_in(written: bytes) -> list[int]:
    lines = written.decode().splitlines()
    return [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]


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


def test_a_page_that_is_not_full_has_all_events(database: Database) -> None:
    job_id = add_job(database)
    tell(database, job_id, 3)
    feed = EventFeed(database, lambda: False)
    with statements(database) as asked:
        asyncio.run(feed._deliver(0))
    assert len(asked) == 1


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
