"""The batches of a worker: one runs, others wait for it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeAlias

from distributed import Worker

from workers.engine import batch_protocol as protocol
from workers.wire import answers

_Waiting: TypeAlias = tuple[float, int, str, int, dict[str, str]]
"""The negative priority, the order of arrival, the client and its number, the work."""


class BatchRunner:
    """Runs the batches that the scheduler sends to a worker, one at a time.

    Args:
        worker: The worker, before it connects.
        answer: Returns the answer to a request; see `workers.wire.answers`. Its first argument is
            the act, `measure` or `compare`.
    """

    def __init__(self, worker: Worker, answer: Callable[[str, str], Awaitable[str]]) -> None:
        self._worker = worker
        self._answer = answer
        self._waiting: list[_Waiting] = []
        self._order = count()
        self._task: asyncio.Task[None] | None = None
        worker.stream_handlers |= {protocol.RUN: self._run, protocol.RECALL: self._recall}

    def _run(self, client: str, number: int, priority: float, work: dict[str, str]) -> None:
        heapq.heappush(self._waiting, (-priority, next(self._order), client, number, work))
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    def _recall(self, client: str, number: int) -> None:
        """Return a batch, unless it has begun: then its answer follows."""
        left = [waiting for waiting in self._waiting if waiting[2:4] != (client, number)]
        if len(left) < len(self._waiting):
            heapq.heapify(left)
            self._waiting = left
            self._send(protocol.RETURN, client, number)

    async def _work(self) -> None:
        while self._waiting:
            _, _, client, number, work = heapq.heappop(self._waiting)
            try:
                answer = await self._answer(work["act"], work["request"])
            except Exception as error:  # without an answer, the batch would be awaited without end
                answer = answers.of_error(error)
            self._send(protocol.ANSWER, client, number, answer=answer)
        self._task = None

    def _send(self, op: str, client: str, number: int, **more: Any) -> None:
        self._worker.batched_send({"op": op, "client": client, "number": number, **more})
