"""New events for all streams of a process: read once and encoded once for all listeners.

All listeners get the same bytes, and the events of one query are sent in one piece. So two hundred
streams cost two hundred writes a query, and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import structlog
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from service.store.database.data_version import DataVersion
from service.store.database.database import Database
from service.store.jobs import events, jobs
from service.wire.models import Event, EventKind, JobState

_log = structlog.get_logger()

POLL_SECS = 0.05
"""Interval at which new events are read, the delay of an event: it should reach 200 clients 250 ms
after its commit, on a host that is busy. A statement takes 0.2 ms of processor time on PostgreSQL.
"""
_WELCOME_SECS = 0.25
"""Interval at which listeners are checked. Chosen."""
PING_SECS = 15.0
"""Interval between pings: proxies close silent connections, nginx after 60 s by default."""
PING = b": ping\n\n"
"""The ping: a comment, which clients ignore."""
MAX_WAITING = 256
"""Events that are queued for a listener; a slower one reads from the database. Bounds memory.
Chosen.
"""

_LIMIT = 500
"""Events of one query: as many as the rows of the largest page. Chosen."""


@dataclass(frozen=True)
class EventBatch:
    """Events of one job: their ids and their encoded form."""

    ids: tuple[int, ...]
    written: tuple[bytes, ...]
    is_end: bool  # one of them brings the job into a final state

    @classmethod
    def of(cls, batch_events: Sequence[Event]) -> EventBatch:
        """Encode events, which are in order."""
        written = tuple(map(_written, batch_events))
        return cls(
            tuple(event.id for event in batch_events), written, any(map(_is_end, batch_events))
        )

    @cached_property
    def _whole(self) -> bytes:
        return b"".join(self.written)

    def after(self, last_id: int) -> bytes:
        """Return the encoded events with ids greater than `last_id`."""
        if self.ids[0] > last_id:
            return self._whole
        pairs = zip(self.ids, self.written, strict=True)
        return b"".join(text for number, text in pairs if number > last_id)


class Listener:
    """The queue of events of one stream; belongs to one event loop.

    Args:
        is_welcome: Return whether the listener is still allowed to read; may query the database.
    """

    def __init__(self, is_welcome: Callable[[], bool] | None = None) -> None:
        self.is_welcome = is_welcome
        self.is_behind = False
        self.is_closed = False
        self._waiting: list[EventBatch] = []
        self._num_waiting = 0
        self._has_news = asyncio.Event()

    def put(self, batch: EventBatch) -> None:
        """Add events to the queue, unless it is full."""
        if self._num_waiting + len(batch.ids) > MAX_WAITING:
            self.is_behind = True
            self._waiting, self._num_waiting = [], 0
        if not self.is_behind:
            self._waiting.append(batch)
            self._num_waiting += len(batch.ids)
        self._has_news.set()

    def close(self) -> None:
        """Mark the end of the events."""
        self.is_closed = True
        self._has_news.set()

    async def take(self) -> list[EventBatch]:
        """Wait for events, and return those of the queue.

        Raises:
            TimeoutError: If no event arrives for `PING_SECS`.
        """
        async with asyncio.timeout(PING_SECS):
            await self._has_news.wait()
        self._has_news.clear()
        taken, self._waiting, self._num_waiting = self._waiting, [], 0
        return taken


class EventFeed:
    """Sends the events of jobs to listeners; belongs to one event loop.

    While a client listens, a task reads new events: only if the database has changed, and once for
    all listeners.
    """

    def __init__(self, database: Database, is_stopping: Callable[[], bool]) -> None:
        self._database = database
        self._is_stopping = is_stopping
        self._version = DataVersion(database)
        self._reads = database.single_reads()
        # A thread of its own: the threads of routes may all be in use.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="event-feed")
        self._listeners: defaultdict[UUID, set[Listener]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._started = asyncio.Event()

    async def stream(
        self, job_id: UUID, last_id: int, is_welcome: Callable[[], bool] | None = None
    ) -> AsyncIterator[bytes]:
        """Yield a job's events after `last_id`, until the job ends or the service stops.

        Args:
            is_welcome: Called every `_WELCOME_SECS`; the stream ends if it returns False.
        """
        async with self._listening(job_id, Listener(is_welcome)) as listener:
            while not listener.is_closed:
                # Later events come through the listener, or are read in the next loop.
                listener.is_behind = False
                # The existing events; the listener may get some of them too. One query is enough:
                # repeating it until nothing is new never ends for a job that adds events faster.
                is_all = has_ended = False
                while not is_all:
                    stored_batch, is_all, has_ended = await run_in_threadpool(
                        self._look, job_id, last_id
                    )
                    if stored_batch is not None:
                        yield stored_batch.after(last_id)
                        last_id = stored_batch.ids[-1]
                # A stream that is requested after the last event ends. A resumed job has several
                # final states.
                if has_ended:
                    return
                async for batch in self._fresh(listener):
                    if batch is None:
                        yield PING
                    elif batch.ids[-1] > last_id:
                        yield batch.after(last_id)
                        last_id = batch.ids[-1]

    async def _fresh(self, listener: Listener) -> AsyncIterator[EventBatch | None]:
        """Yield new events, or None as a ping, until the database must be read again."""
        while not listener.is_behind and not listener.is_closed:
            try:
                taken = await listener.take()
            except TimeoutError:
                yield None
                continue
            for batch in taken:
                yield batch
            if any(batch.is_end for batch in taken):
                return

    @asynccontextmanager
    async def _listening(self, job_id: UUID, listener: Listener) -> AsyncIterator[Listener]:
        self._listeners[job_id].add(listener)
        try:
            if self._task is None or self._task.done():
                self._started = asyncio.Event()
                self._task = asyncio.create_task(self._poll(self._started))
            # The listener gets all events that are committed from now on.
            await self._started.wait()
            yield listener
        finally:
            self._listeners[job_id].discard(listener)
            if not self._listeners[job_id]:
                del self._listeners[job_id]

    async def _poll(self, started: asyncio.Event) -> None:
        """Read new events while a client listens."""
        last_id: int | None = None
        version: int | None = None
        checked_at = time.monotonic()
        try:
            while self._listeners and not self._is_stopping():
                now = self._version.read()
                if last_id is None or now is None or now != version:
                    try:
                        if last_id is None:
                            last_id = await run_in_threadpool(self._newest)
                            started.set()
                        last_id = await self._deliver(last_id)
                        version = now
                    except SQLAlchemyError:
                        _log.warning("cannot read events", exc_info=True)
                if time.monotonic() - checked_at >= _WELCOME_SECS:
                    await self._dismiss()
                    checked_at = time.monotonic()
                await asyncio.sleep(POLL_SECS)
        finally:
            for listeners in self._listeners.values():
                for listener in listeners:
                    listener.close()
            started.set()

    async def _dismiss(self) -> None:
        """End the streams of clients that are no longer allowed to listen."""
        guarded = [
            listener
            for listeners in self._listeners.values()
            for listener in listeners
            if listener.is_welcome is not None
        ]
        if not guarded:
            return

        def unwelcome() -> list[Listener]:
            return [
                listener
                for listener in guarded
                if listener.is_welcome and not listener.is_welcome()
            ]

        try:
            for listener in await run_in_threadpool(unwelcome):
                listener.close()
        except SQLAlchemyError:
            _log.warning("cannot read tokens", exc_info=True)

    async def _deliver(self, last_id: int) -> int:
        """Send the events after `last_id` to the listeners; return the last id."""
        loop = asyncio.get_running_loop()
        is_all = False
        while not is_all:
            last_id, is_all, batches = await loop.run_in_executor(
                self._thread, self._of_all_after, last_id
            )
            for job_id, batch in batches.items():
                for listener in self._listeners.get(job_id, ()):
                    listener.put(batch)
        return last_id

    def _newest(self) -> int:
        with self._database.read() as session:
            return events.newest_id(session)

    def _of_all_after(self, last_id: int) -> tuple[int, bool, dict[UUID, EventBatch]]:
        """Return the last id of the events after `last_id`, whether they are all, and the events.

        A page that is not full has all: jobs may add events faster than pages are read.
        """
        rows = events.of_all_after(self._reads, last_id, limit=_LIMIT)
        of_jobs: defaultdict[UUID, list[Event]] = defaultdict(list)
        for job_id, event in rows:
            of_jobs[job_id].append(event)
        batches = {job_id: EventBatch.of(some) for job_id, some in of_jobs.items()}
        return (rows[-1][1].id if rows else last_id), len(rows) < _LIMIT, batches

    def _look(self, job_id: UUID, last_id: int) -> tuple[EventBatch | None, bool, bool]:
        """Return a job's events after `last_id`, whether they are all, and whether it has ended."""
        with self._database.read() as session:
            job_events = events.after(session, job_id, last_id, limit=_LIMIT)
            is_final = jobs.get(session, job_id).state.is_final
        return EventBatch.of(job_events) if job_events else None, len(job_events) < _LIMIT, is_final


def _is_end(event: Event) -> bool:
    return event.kind == EventKind.STATE and JobState(str(event.payload["state"])).is_final


def _written(event: Event) -> bytes:
    text = f"event: {event.kind}\ndata: {event.model_dump_json()}\nid: {event.id}\n\n"
    return text.encode()
