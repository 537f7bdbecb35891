"""The connected workers of a Dask cluster.

Any error of Dask is an `EngineClosedError` if the engine was closed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock
from time import monotonic
from typing import Any

import structlog
from distributed import Client

from workers.engine.batch_protocol import FACTS
from workers.engine.engine import EngineClosedError, WorkerFacts

_log = structlog.get_logger()

_RECENT_SECS = 5.0
"""Age up to which a list of workers is used again. A list of a thousand workers takes the scheduler
and the reader a tenth of a second of processor time. Chosen.
"""


class WorkerList:
    """The workers of a cluster; safe to use from several threads."""

    def __init__(self, client: Client, is_closed: Event) -> None:
        self._client = client
        self._is_closed = is_closed
        self._lock = Lock()  # one thread reads, the others wait for its result
        self._workers: list[WorkerFacts] = []
        self._until = -float("inf")

    def recent(self) -> list[WorkerFacts]:
        """Return the workers, by name, as they were connected at most some seconds ago."""
        with self._lock:
            if monotonic() >= self._until:
                self._read()
            return self._workers

    def current(self) -> list[WorkerFacts]:
        """Return the workers that are connected now, by name."""
        with self._lock:
            self._read()
            return self._workers

    def _read(self) -> None:
        self._workers = connected_workers(self._client, self._is_closed)
        # An empty list is read again at once: the first worker is awaited.
        self._until = monotonic() + (_RECENT_SECS if self._workers else 0.0)


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
    reported = {
        **worker.get(FACTS, {}),
        **worker["metrics"].get(FACTS, {}),
    }
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
