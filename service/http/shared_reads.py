"""One statement for the reads of many concurrent requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger()

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

INTERVAL_SECS = 0.004
"""The least time between the end of a statement and the begin of the next: requests that arrive
meanwhile share it. A fifth of the 20 ms that a look-up may take.
"""


class SharedReads(Generic[KeyT, ValueT]):
    """Reads values of keys for many requests; belongs to one event loop.

    A request takes part in the first statement that begins after it. So it sees all that was
    committed before it, at the cost of at most one statement each `INTERVAL_SECS`.

    Args:
        read: Read the values of keys from the database; called in a thread of its own, so that it
            does not wait for threads of slow routes.
    """

    def __init__(self, read: Callable[[Collection[KeyT]], Mapping[KeyT, ValueT]]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shared-reads")
        self._waiting: dict[KeyT, asyncio.Future[ValueT | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def get(self, key: KeyT) -> ValueT | None:
        """Return the value of a key; None without one, or if the database does not respond."""
        if self._task is None or self._task.done():
            self._waiting = {}  # a task that was cancelled with its loop leaves futures
            # Its log lines belong to no request: the first one's id would stay.
            self._task = asyncio.create_task(self._serve(), context=Context())
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = asyncio.get_running_loop().create_future()
        # A client that disconnects must not cancel the read of the others.
        return await asyncio.shield(future)

    async def _serve(self) -> None:
        """Read for all waiting requests, until none waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            values: Mapping[KeyT, ValueT] = {}
            try:
                values = await loop.run_in_executor(self._thread, self._read, tuple(waiting))
            except Exception:  # the routes of the requests will find the reason, and answer
                _log.warning("cannot read for cached answers", exc_info=True)
            for key, future in waiting.items():
                future.set_result(values.get(key))
            await asyncio.sleep(INTERVAL_SECS)
