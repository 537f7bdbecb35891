"""The slots that the workers of a cluster offer for a label, and the batches that wait for them.

Any error of Dask is an `EngineClosedError` if the engine was closed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import TypeVar

from compiler.runtime.measurement import Measurement
from workers.engine.batch_client import Answer, BatchClient, Loss, Slots, Ticket
from workers.engine.batch_size import BatchSizer
from workers.engine.engine import Requester, RequestInterruptedError, WorkersGoneError
from workers.engine.worker_list import calling_dask, raise_if_closed
from workers.measure.compare import CompareRequest
from workers.wire.answers import AnswerError, read_rounds
from workers.wire.request import MeasureRequest

ItemT = TypeVar("ItemT")

# Bounds that are chosen, not measured.
_POLL_SECS = 0.5  # wait for a result, after which interruptions and lost workers are noticed
_NO_WORKER_SECS = 60.0  # a nanny replaces a worker in a second: without any for so long, none comes
_PER_SLOT = 2  # batches of a request at a worker: one runs, one waits


class LostBatchError(RuntimeError):
    """The worker was lost with its batch."""


class DaskSlots:
    """The device slots of a cluster that serve one label."""

    def __init__(self, client: BatchClient, label: str, is_closed: Event) -> None:
        self.label = label
        self.sizer = BatchSizer()
        self._client = client
        self._is_closed = is_closed

    @property
    def max_in_flight(self) -> int:
        """The number of batches of one request that may be in flight."""
        return _PER_SLOT * max(1, self._slots.num_workers)

    def size(self, workload: str, num_left: int) -> int:
        """Return how many of a request's remaining candidates the next batch has."""
        slots = self._slots
        num_slots = slots.num_workers // max(1, slots.num_requesters)
        return self.sizer.size(workload, num_left, max(1, num_slots))

    def share(self, owner: str) -> float:
        """Return how many workers a request of an owner may expect beside the others."""
        return self._slots.share(owner)

    def submit(
        self,
        request: MeasureRequest | CompareRequest,
        requester: Requester,
        done: Callable[[Answer], None],
    ) -> int:
        """Send a request to the next free slot; return the number of its batch.

        Args:
            done: Called with the answer.
        """
        standing = requester.standing()
        ticket = Ticket(
            owner=standing.owner,
            requester=requester.name,
            priority=standing.priority,
            secs=len(request.traces) * self.sizer.secs(request.workload),
        )
        act = "measure" if isinstance(request, MeasureRequest) else "compare"
        work = {"act": act, "request": json.dumps(request.to_json())}
        with calling_dask(self._is_closed):
            return self._client.submit(self.label, ticket, work, done)

    def drop(self, numbers: list[int]) -> None:
        """Wait for batches no longer; those that have not begun never do."""
        if not self._client.is_closed:
            self._client.drop(numbers)

    def compare(self, request: CompareRequest, requester: Requester) -> list[list[Measurement]]:
        """Return the first rounds of a request, at least one.

        Raises:
            LostBatchError: If the worker was lost, or its answer is an error.
            RequestInterruptedError: If the requester interrupts it.
        """
        answers: SimpleQueue[Answer] = SimpleQueue()
        answer: Answer = Loss.CONNECTION
        while answer is Loss.CONNECTION:
            number = self.submit(request, requester, answers.put)
            try:
                answer = self.next_of(answers, requester)
            finally:
                self.drop([number])
        if answer is Loss.WORKER:
            raise LostBatchError("its process ended")
        try:
            most = request.num_rounds - request.first_round
            return read_rounds(answer, request.num_contestants, most)
        except AnswerError as error:
            raise LostBatchError(str(error)) from error

    def next_of(self, answers: SimpleQueue[ItemT], requester: Requester) -> ItemT:
        """Wait for an item in a queue, as long as there is a worker that may cause it.

        Raises:
            RequestInterruptedError: If the requester interrupts it.
            WorkersGoneError: If there is no worker for a while, or no scheduler.
        """
        seen_at = monotonic()
        while True:
            raise_if_closed(self._is_closed)
            if requester.is_interrupted():
                raise RequestInterruptedError("the request was interrupted")
            try:
                return answers.get(timeout=_POLL_SECS)
            except Empty:
                if self._client.is_closed:
                    raise WorkersGoneError("the connection to the scheduler was lost") from None
                if self._client.is_connected and self._slots.num_workers:
                    seen_at = monotonic()
                elif monotonic() - seen_at > _NO_WORKER_SECS:
                    raise WorkersGoneError("all workers were lost, and none returned") from None

    @property
    def _slots(self) -> Slots:
        return self._client.slots(0.0).get(self.label, Slots())
