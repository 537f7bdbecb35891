"""Read the events of many jobs over HTTP, and note when each event arrives."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import uvloop

from service.wire.models import EventKind, JobState


class Streams:
    """Open streams in a thread.

    Attributes:
        arrivals: The time at which each event arrived, by its id.
        seen: The highest counter of each job.
        num_ended: The streams that ended with their job, which had measured all its candidates.
        num_broken: Those that ended before.
    """

    def __init__(self, url: str, job_ids: Sequence[UUID]) -> None:
        self.arrivals: dict[int, float] = {}
        self.seen: dict[UUID, int] = {}
        self.num_ended = self.num_broken = 0
        self._url = urlsplit(url)
        self._job_ids = job_ids
        self._loop = uvloop.new_event_loop()
        self._task = self._loop.create_task(self._read_all())
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close all streams."""
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.close()

    async def _read_all(self) -> None:
        await asyncio.gather(*map(self._read, self._job_ids))

    async def _read(self, job_id: UUID) -> None:
        try:
            reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
            path = f"/api/v1/jobs/{job_id}/events"
            head = f"GET {path} HTTP/1.1\r\nHost: {self._url.netloc}\r\nLast-Event-ID: now\r\n\r\n"
            writer.write(head.encode())
            has_ended = False
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    has_ended |= self._note(job_id, json.loads(line[len(b"data: ") :]))
            self.num_ended += has_ended
            self.num_broken += not has_ended
        except OSError:
            self.num_broken += 1

    def _note(self, job_id: UUID, event: dict[str, Any]) -> bool:
        """Note an event; return whether its job ended by it."""
        self.arrivals[int(event["id"])] = time.time()
        payload = event["payload"]
        if "num_measured" in payload:
            self.seen[job_id] = max(self.seen.get(job_id, 0), int(payload["num_measured"]))
        return event["kind"] == EventKind.STATE and JobState(payload["state"]).is_final
