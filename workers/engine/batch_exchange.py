"""The exchange of batches, in the scheduler: from coordinators to workers, and the answers back.

Dask keeps the connections, the list of workers and their nannies; its own tasks are not used. Such
a task costs the scheduler milliseconds, because it compares all workers to place it, and fetches
its result from the worker. A batch is a few messages, whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from time import monotonic
from typing import Any, TypeAlias

import structlog
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import DEFAULT_EXTENSIONS

from workers.engine import batch_protocol as protocol
from workers.engine.batch_queue import Batch, BatchQueue

_log = structlog.get_logger()

_SLOTS_SECS = 0.1
"""Delay after which coordinators hear of workers that came or went: many may come at once. Chosen.
"""

_HEARTBEAT_SECS = 0.02
"""Interval of heartbeats for each worker: fifty a second at most. A heartbeat costs the scheduler
as much as a batch. Chosen.
"""
_BatchKey: TypeAlias = tuple[str, int]
"""The client of a batch, and its number there."""
_NOTHING = (None, None)


class BatchExchange(SchedulerPlugin):
    """The queues of all labels; an extension of Dask's scheduler."""

    name = "loopwright-batches"

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._queues: dict[str, BatchQueue] = {}
        self._queue_of_worker: dict[str, BatchQueue] = {}
        self._batches: dict[_BatchKey, tuple[Batch, BatchQueue]] = {}
        self._is_slots_due = False
        scheduler.stream_handlers |= {
            protocol.SUBMIT: self._submit,
            protocol.DROP: self._drop,
            protocol.CHECK: self._check,
            protocol.ANSWER: self._answer,
            protocol.RETURN: self._return,
        }
        scheduler.handlers["heartbeat_worker"] = self._heartbeat
        scheduler.handlers["identity"] = self._identity
        scheduler.add_plugin(self)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Use a worker that joined, unless it refuses work."""
        state = scheduler.workers[worker]
        facts = state.extra.get(protocol.FACTS, {})
        if facts.get("refuses"):
            return
        if facts.get("protocol") != protocol.PROTOCOL:
            _log.warning("a worker of another version gets no work", worker=str(state.name))
            return
        (label,) = state.resources
        queue = self._queue_of_worker[worker] = self._queue(label)
        queue.join(worker)
        self._tell_slots_soon()

    def remove_worker(
        self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **_: Any
    ) -> None:
        """Return the batches of a worker that is gone; the client of one that ran hears of it."""
        queue = self._queue_of_worker.pop(worker, None)
        if queue is None:
            return
        for batch in queue.leave(worker):
            self._end(batch, None)
        self._tell_slots_soon()

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Drop the batches of a client that is gone."""
        self._drop(client, [number for name, number in self._batches if name == client])

    def _heartbeat(self, **details: Any) -> dict[str, Any]:
        """Tell a worker to send heartbeats less often than Dask would, if there are many."""
        response = self._scheduler.heartbeat_worker(**details)
        if (interval := response.get("heartbeat-interval")) is not None:
            most = _HEARTBEAT_SECS * len(self._scheduler.workers)
            response["heartbeat-interval"] = max(interval, most)
        return response

    def _identity(self, n_workers: int = -1) -> dict[str, Any]:
        """Describe the scheduler and its workers, without what Dask measures of each.

        Each coordinator reads this list every ten seconds. With all of it, 400 workers take a
        seventh of the processor time of a coordinator that runs 27 jobs.
        """
        identity = self._scheduler.identity(n_workers=0)
        num = len(self._scheduler.workers) if n_workers == -1 else n_workers
        identity["workers"] = {
            worker.address: {
                "name": worker.name,
                "host": worker.host,
                "resources": worker.resources,
                "last_seen": worker.last_seen,
                "status": worker.status.name,
                "metrics": {protocol.FACTS: worker.metrics.get(protocol.FACTS, {})},
                protocol.FACTS: worker.extra.get(protocol.FACTS, {}),
            }
            for worker in islice(self._scheduler.workers.values(), num)
        }
        return identity

    def _queue(self, label: str) -> BatchQueue:
        if label not in self._queues:
            self._queues[label] = BatchQueue(self._run, self._recall, monotonic)
        return self._queues[label]

    def _submit(
        self, client: str, number: int, label: str, ticket: dict[str, Any], work: dict[str, str]
    ) -> None:
        message = {
            "op": protocol.RUN,
            "client": client,
            "number": number,
            "work": work,
        }
        requester = f"{client}/{ticket['requester']}"
        batch = Batch(client, number, message=message, **{**ticket, "requester": requester})
        queue = self._queue(label)
        self._batches[client, number] = batch, queue
        queue.add(batch)

    def _drop(self, client: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            if (entry := self._batches.get((client, number))) is not None:
                batch, queue = entry
                queue.drop(batch)
                if batch.worker is None:
                    self._end(batch, None)

    def _answer(self, worker: str, client: str, number: int, answer: str) -> None:
        batch, queue = self._batches.get((client, number), _NOTHING)
        if batch is not None and queue is not None and batch.worker == worker:
            queue.ended(batch)
            self._end(batch, answer)

    def _return(self, worker: str, client: str, number: int) -> None:
        batch, queue = self._batches.get((client, number), _NOTHING)
        if batch is not None and queue is not None and batch.worker == worker:
            queue.returned(batch)
            if batch.is_dropped:
                self._end(batch, None)

    def _end(self, batch: Batch, answer: str | None) -> None:
        """Forget a batch, and tell its client the answer; None if its worker was lost."""
        del self._batches[batch.client, batch.number]
        if not batch.is_dropped:
            message = {"op": protocol.ANSWER, "number": batch.number, "answer": answer}
            self._scheduler.send_all({batch.client: [message]}, {})

    def _run(self, batch: Batch) -> None:
        assert batch.worker is not None
        self._scheduler.send_all({}, {batch.worker: [batch.message]})

    def _recall(self, batch: Batch) -> None:
        assert batch.worker is not None
        message = {"op": protocol.RECALL, "client": batch.client, "number": batch.number}
        self._scheduler.send_all({}, {batch.worker: [message]})

    def _check(self, client: str, numbers: Sequence[int]) -> None:
        """Tell a client which of its batches are unknown, and how many workers there are."""
        unknown = [number for number in numbers if (client, number) not in self._batches]
        self._tell_slots([client], unknown)

    def _tell_slots_soon(self) -> None:
        if not self._is_slots_due:
            self._is_slots_due = True
            self._scheduler.loop.call_later(_SLOTS_SECS, self._tell_all_slots)

    def _tell_all_slots(self) -> None:
        self._is_slots_due = False
        self._tell_slots(list(self._scheduler.client_comms), [])

    def _tell_slots(self, clients: Sequence[str], unknown: Sequence[int]) -> None:
        slots = {
            label: (queue.num_workers, dict(queue.num_requesters))
            for label, queue in self._queues.items()
        }
        message = {"op": protocol.SLOTS, "slots": slots, "unknown": unknown}
        self._scheduler.send_all({client: [message] for client in clients}, {})


EXTENSIONS = {**DEFAULT_EXTENSIONS, BatchExchange.name: BatchExchange}
"""The extensions of a scheduler. Heartbeats of workers expect those of Dask."""
