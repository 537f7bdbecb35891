"""The connected workers of a Dask cluster, and the slots that they offer for a kind of target.

Any error of Dask is an `EngineClosedError` if the engine was closed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import Any, TypeVar

import structlog
from distributed import Client, Future

from compiler.runtime.measurement import Measurement
from workers.engine import dask_worker
from workers.engine.batch_size import BatchSizer
from workers.engine.engine import (
    EngineClosedError,
    NoWorkerError,
    WorkerFacts,
    WorkersGoneError,
)
from workers.measure.compare import CompareRequest
from workers.wire.answers import read_rounds
from workers.wire.request import MeasureRequest

ItemT = TypeVar("ItemT")

_log = structlog.get_logger()

# Bounds that are chosen, not measured.
_POLL_SECS = 0.5  # wait for a result, after which lost workers are noticed
_NO_WORKER_SECS = 60.0  # a nanny replaces a worker in a second: without any for so long, none comes


class LostBatchError(RuntimeError):
    """The worker was lost with its batch."""


class DaskSlots:
    """The device slots of a cluster that serve one label, and their queue."""

    def __init__(self, client: Client, label: str, num_slots: int, is_closed: Event) -> None:
        self.client = client
        self.label = label
        self.num_slots = num_slots
        self.sizer = BatchSizer()
        self.is_closed = is_closed
        self._order = count()

    def submit(
        self, act: Callable[[str], str], request: MeasureRequest | CompareRequest
    ) -> Future[str]:
        """Send a request to the first free slot."""
        with calling_dask(self.is_closed):
            return self.client.submit(
                act,
                json.dumps(request.to_json()),
                pure=False,
                retries=0,
                priority=-next(self._order),  # equal priorities are not first come, first served
                resources={self.label: 1},
            )

    def compare(self, request: CompareRequest) -> list[list[Measurement]]:
        """Return the first rounds of a request, at least one.

        Raises:
            LostBatchError: If the worker was lost.
        """
        done: SimpleQueue[None] = SimpleQueue()
        future = self.submit(dask_worker.compare_batch, request)
        future.add_done_callback(lambda _: done.put(None))
        try:
            self.next_of(done)
            most = request.num_rounds - request.first_round
            return read_rounds(future.result(), request.num_contestants, most)
        except (NoWorkerError, EngineClosedError):
            raise
        except Exception as error:
            self.raise_if_closed()
            raise LostBatchError(repr(error)) from error
        finally:
            future.release()

    def next_of(self, done: SimpleQueue[ItemT]) -> ItemT:
        """Wait for an item in a queue, as long as there is a worker that may add it."""
        seen_at = monotonic()
        while True:
            self.raise_if_closed()
            try:
                return done.get(timeout=_POLL_SECS)
            except Empty:
                if self.is_served():
                    seen_at = monotonic()
                elif monotonic() - seen_at > _NO_WORKER_SECS:
                    raise WorkersGoneError("all workers were lost, and none returned") from None

    def is_served(self) -> bool:
        """Return whether there is a worker."""
        return any(self.label == w.label for w in connected_workers(self.client, self.is_closed))

    def raise_if_closed(self) -> None:
        """Raise an error if the engine is closed."""
        raise_if_closed(self.is_closed)


def connected_workers(client: Client, is_closed: Event) -> list[WorkerFacts]:
    """Return the workers that are connected, by name."""
    with calling_dask(is_closed):
        scheduler = client.scheduler
        assert scheduler is not None
        identity = client.sync(scheduler.identity, n_workers=-1)
    workers = []
    for worker in identity["workers"].values():
        try:
            workers.append(_facts(worker))
        except (AttributeError, LookupError, TypeError, ValueError):
            _log.warning("a worker reported invalid facts", exc_info=True)
    return sorted(workers, key=lambda worker: worker.name)


@contextmanager
def calling_dask(is_closed: Event) -> Iterator[None]:
    """Convert an error of Dask to `EngineClosedError` if the engine was closed meanwhile."""
    raise_if_closed(is_closed)
    try:
        yield
    except Exception:
        raise_if_closed(is_closed)
        raise


def raise_if_closed(is_closed: Event) -> None:
    """Raise `EngineClosedError` if the engine is closed."""
    if is_closed.is_set():
        raise EngineClosedError("the engine was closed")


def _facts(worker: dict[str, Any]) -> WorkerFacts:
    """Parse the facts that a worker reports, which are not trusted."""
    reported = {**worker.get(dask_worker.FACTS, {}), **worker["metrics"].get(dask_worker.FACTS, {})}
    facts: dict[str, Any] = json.loads(json.dumps(reported, allow_nan=False))
    host, pid = str(facts.pop("host", worker["host"])), int(facts.pop("pid", 0))
    (label,) = worker["resources"]
    return WorkerFacts(
        name=f"{host}/{worker['name']}",
        host=host,
        label=label,
        pid=pid,
        is_busy=facts.get("task") is not None,
        last_seen=worker["last_seen"],
        facts=facts,
    )
