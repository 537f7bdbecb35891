"""The slots that the workers of a Dask cluster offer for a kind of target.

Any error of Dask is an `EngineClosedError` if the engine was closed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic, time
from typing import TypeVar

from dask.typing import Key
from distributed import Client, Future

from compiler.runtime.measurement import Measurement
from workers.engine import dask_worker
from workers.engine.batch_size import BatchSizer
from workers.engine.engine import (
    EngineClosedError,
    NoWorkerError,
    RequestInterruptedError,
    WorkersGoneError,
)
from workers.engine.worker_list import WorkerList, calling_dask, raise_if_closed
from workers.measure.compare import CompareRequest
from workers.wire.answers import read_rounds
from workers.wire.request import MeasureRequest

ItemT = TypeVar("ItemT")

# Bounds that are chosen, not measured.
_POLL_SECS = 0.5  # wait for a result, after which lost workers are noticed
_NO_WORKER_SECS = 60.0  # a nanny replaces a worker in a second: without any for so long, none comes
_PRIORITY_SECS = 1e6  # a priority higher by one goes before all that waits for less than 11 days
_CHECK_SECS = 10.0  # interval at which the scheduler is asked about the batches that are awaited


class LostBatchError(RuntimeError):
    """The worker was lost with its batch."""


class DaskSlots:
    """The device slots of a cluster that serve one label, and their queue."""

    def __init__(
        self, client: Client, workers: WorkerList, label: str, num_slots: int, is_closed: Event
    ) -> None:
        self.client = client
        self.label = label
        self.num_slots = num_slots
        self.sizer = BatchSizer()
        self.is_closed = is_closed
        self._workers = workers

    def submit(
        self,
        act: Callable[[str], str],
        request: MeasureRequest | CompareRequest,
        priority: int = 0,
    ) -> Future[str]:
        """Send a request to the first free slot; a higher priority goes before others."""
        with calling_dask(self.is_closed):
            return self.client.submit(
                act,
                json.dumps(request.to_json()),
                pure=False,
                retries=0,
                # Equal priorities are not first come, first served. Engines of other processes
                # send requests, too.
                priority=priority * _PRIORITY_SECS - time(),
                resources={self.label: 1},
            )

    def compare(
        self, request: CompareRequest, is_interrupted: Callable[[], bool], priority: int = 0
    ) -> list[list[Measurement]]:
        """Return the first rounds of a request, at least one.

        Raises:
            LostBatchError: If the worker was lost.
            RequestInterruptedError: If `is_interrupted` returns True.
        """
        done: SimpleQueue[None] = SimpleQueue()
        future = self.submit(dask_worker.compare_batch, request, priority)
        future.add_done_callback(lambda _: done.put(None))
        try:
            self.next_of(done, is_interrupted, lambda: [future])
            most = request.num_rounds - request.first_round
            return read_rounds(future.result(), request.num_contestants, most)
        except (NoWorkerError, EngineClosedError, RequestInterruptedError):
            raise
        except Exception as error:
            self.raise_if_closed()
            raise LostBatchError(repr(error)) from error
        finally:
            future.release()

    def next_of(
        self,
        done: SimpleQueue[ItemT],
        is_interrupted: Callable[[], bool],
        awaited: Callable[[], Iterable[Future[str]]],
    ) -> ItemT:
        """Wait for an item in a queue, as long as there is a worker that may add it.

        Args:
            done: The queue, to which each future adds an item when it ends.
            is_interrupted: Returns whether the request is interrupted.
            awaited: Returns the futures. One that the scheduler does not know is cancelled: a
                scheduler that was replaced never ends it.

        Raises:
            RequestInterruptedError: If `is_interrupted` returns True.
        """
        seen_at = checked_at = monotonic()
        unknown: set[Key] = set()
        while True:
            self.raise_if_closed()
            if is_interrupted():
                raise RequestInterruptedError("the request was interrupted")
            try:
                return done.get(timeout=_POLL_SECS)
            except Empty:
                if self.is_served():
                    seen_at = monotonic()
                elif monotonic() - seen_at > _NO_WORKER_SECS:
                    raise WorkersGoneError("all workers were lost, and none returned") from None
                if monotonic() - checked_at > _CHECK_SECS:
                    unknown = self._cancel_unknown(awaited(), unknown)
                    checked_at = monotonic()

    def _cancel_unknown(self, awaited: Iterable[Future[str]], before: set[Key]) -> set[Key]:
        """Cancel the futures that the scheduler did not know before, and does not know now.

        Returns:
            The keys of those that it does not know. One may be on its way to the scheduler.
        """
        futures = {future.key: future for future in awaited}
        scheduler = self.client.scheduler
        assert scheduler is not None
        with calling_dask(self.is_closed):
            states = self.client.sync(scheduler.get_task_status, keys=list(futures))
        unknown = {key for key in futures if states.get(key) is None}
        for key in unknown & before:
            futures[key].cancel()
        return unknown

    def is_served(self) -> bool:
        """Return whether there is a worker."""
        return any(self.label == worker.label for worker in self._workers.recent())

    def raise_if_closed(self) -> None:
        """Raise an error if the engine is closed."""
        raise_if_closed(self.is_closed)
