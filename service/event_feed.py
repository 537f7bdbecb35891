"""New events for all streams of a process: one look at the database serves every listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from uuid import UUID

import structlog
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from loopwright.models import Event, EventKind, JobState
from service.store import events, jobs
from service.store.data_version import DataVersion
from service.store.database import Database

_log = structlog.get_logger()

POLL_SECS = 0.25
MAX_WAITING = 256
"""A listener with more events before it is behind: it reads them from the database."""

Queue: TypeAlias = "asyncio.Queue[Event]"


class EventFeed:
    """Hands the events of jobs to those who listen; belongs to one event loop.

    While somebody listens, a task looks for events newer than the last it saw: only when the
    database has changed, and once for all listeners.
    """

    def __init__(self, database: Database, is_stopping: Callable[[], bool]) -> None:
        self._database = database
        self._is_stopping = is_stopping
        self._version = DataVersion(database)
        self._listeners: dict[Queue, UUID] = {}
        self._behind: set[Queue] = set()
        self._task: asyncio.Task[None] | None = None
        self._started = asyncio.Event()

    async def stream(self, job_id: UUID, last_id: int) -> AsyncIterator[Event]:
        """Yield a job's events after `last_id`, until it ends for good or the service stops."""
        async with self._listening(job_id) as queue:
            while not self._is_stopping():
                # Those that are there already; the queue may have some of them, too.
                while found := await run_in_threadpool(self._after, job_id, last_id):
                    for event in found:
                        last_id = event.id
                        yield event
                # Asked again after its last event, a stream ends; a job that went on after an end
                # has more than one.
                if await run_in_threadpool(self._has_ended, job_id, last_id):
                    return
                async for event in self._fresh(queue):
                    if event.id > last_id:
                        last_id = event.id
                        yield event

    async def _fresh(self, queue: Queue) -> AsyncIterator[Event]:
        """Yield what comes, until it is worth a look into the database."""
        while queue not in self._behind and not self._is_stopping():
            try:
                event = await asyncio.wait_for(queue.get(), 4 * POLL_SECS)
            except TimeoutError:
                continue  # perhaps the service stops
            yield event
            if _is_end(event):
                return
        self._behind.discard(queue)

    @asynccontextmanager
    async def _listening(self, job_id: UUID) -> AsyncIterator[Queue]:
        queue: Queue = asyncio.Queue(MAX_WAITING)
        self._listeners[queue] = job_id
        try:
            if self._task is None or self._task.done():
                self._started = asyncio.Event()
                self._task = asyncio.create_task(self._poll(self._started))
            # What is committed from now on comes through the queue.
            await self._started.wait()
            yield queue
        finally:
            self._listeners.pop(queue, None)
            self._behind.discard(queue)

    async def _poll(self, started: asyncio.Event) -> None:
        """Look for new events while somebody listens."""
        last_id: int | None = None
        version: int | None = None
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
                    _log.warning("events cannot be read now", exc_info=True)
            await asyncio.sleep(POLL_SECS)
        started.set()

    async def _deliver(self, last_id: int) -> int:
        """Put the events after `last_id` on the queues of those who listen; return the last."""
        while found := await run_in_threadpool(self._of_all_after, last_id):
            for job_id, event in found:
                last_id = event.id
                for queue, wanted in self._listeners.items():
                    if wanted == job_id:
                        self._put(queue, event)
        return last_id

    def _put(self, queue: Queue, event: Event) -> None:
        try:
            queue.put_nowait(event)
        except asyncio.QueueFull:
            self._behind.add(queue)
            while not queue.empty():
                queue.get_nowait()

    def _newest(self) -> int:
        with self._database.read() as session:
            return events.newest_id(session)

    def _of_all_after(self, last_id: int) -> list[tuple[UUID, Event]]:
        with self._database.read() as session:
            return events.of_all_after(session, last_id)

    def _after(self, job_id: UUID, last_id: int) -> list[Event]:
        with self._database.read() as session:
            return events.after(session, job_id, last_id)

    def _has_ended(self, job_id: UUID, last_id: int) -> bool:
        with self._database.read() as session:
            is_final = jobs.get(session, job_id).state.is_final
            return is_final and not events.after(session, job_id, last_id, limit=1)


def _is_end(event: Event) -> bool:
    return event.kind == EventKind.STATE and JobState(str(event.payload["state"])).is_final
