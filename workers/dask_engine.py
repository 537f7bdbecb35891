"""The engine on dask.distributed; the one module that imports it.

Dask holds no more batches than its slots can take now, is told nothing but text, and runs nothing
but `measure_batch` and `compare_batch` of `workers.slot`: candidates live and die in that process's
child.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import Any, Self, TypeVar

import dask
from distributed import Client, Future, LocalCluster, Nanny
from distributed.security import Security

from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target import Target
from workers import slot
from workers.batches import BatchSizer
from workers.compare import CompareRequest
from workers.engine import EngineClosedError, EngineStartError, NoWorkerError, WorkerFacts
from workers.request import MeasureRequest

ItemT = TypeVar("ItemT")

_MAX_RESUBMISSIONS = 3
# Batches in flight for each slot: one that runs, one that waits.
_PER_SLOT = 2
_POLL_SECS = 0.5
# A nanny replaces a worker in a second; without any for so long, none will come.
_NO_WORKER_SECS = 60.0
_CLOSE_SECS = 5.0
_LOOPBACK = "127.0.0.1"

_SETTINGS = {
    "distributed.scheduler.allowed-failures": 2,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.active-memory-manager.start": False,
    # What runs beside the child disturbs its timing.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    # Nothing is told over plain HTTP.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Else these would be set in this very process.
    "distributed.nanny.pre-spawn-environ": {},
}


class LostBatchError(RuntimeError):
    """The worker vanished with what it was to do."""


class DaskEngine:
    """Measures candidates on the workers of a Dask cluster; see `workers.engine.Engine`.

    Made by `embedded`.
    """

    def __init__(self, cluster: LocalCluster, slots: _Slots) -> None:
        self._cluster = cluster
        self._slots = slots

    @classmethod
    def embedded(cls, num_workers: int = 1) -> Self:
        """Start workers on this host for this host's kind of target.

        Only this process and its workers can use them: they listen on loopback, behind TLS with
        keys made for the occasion. They die with this process, however it ends.

        Raises:
            EngineStartError: If they do not start, or their self-test fails.
        """
        label = Target("cpu").label
        with dask.config.set(_SETTINGS):
            try:
                cluster = LocalCluster(
                    n_workers=num_workers,
                    threads_per_worker=1,
                    processes=True,
                    host=_LOOPBACK,
                    security=Security.temporary(),
                    dashboard_address=None,
                    # There is no dashboard, yet Dask opens a port for it: at least any port.
                    scheduler_kwargs={"dashboard_address": f"{_LOOPBACK}:0"},
                    silence_logs=logging.ERROR,
                    worker_class=Nanny,
                    memory_limit=0,
                    resources={label: 1},
                    preload=[slot.__name__],
                )
            except (OSError, RuntimeError) as error:
                raise EngineStartError(f"the workers can't be started: {error}") from error
        slots = _Slots(Client(cluster, set_as_default=False), label, num_workers)
        engine = cls(cluster, slots)
        if refusals := {w.facts["refuses"] for w in engine.workers() if "refuses" in w.facts}:
            engine.close()
            raise EngineStartError(f"no worker takes work: {'; '.join(sorted(refusals))}")
        return engine

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, batch by batch.

        Raises:
            NoWorkerError: If no worker serves the target.
            EngineClosedError: If the engine is closed, now or meanwhile.
        """
        self._check_label(request.target)
        run = _Run(self._slots, request)
        try:
            yield from run.results()
        finally:
            run.abandon()

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds, each measured by one worker: a measurement of each trace.

        Raises:
            NoWorkerError: If no worker serves the target, or all that tried were lost.
            EngineClosedError: If the engine is closed, now or meanwhile.
        """
        self._check_label(request.target)
        num_losses = 0
        while request.first_round < request.num_rounds:
            try:
                rounds = self._slots.compare(request)
            except LostBatchError as error:
                num_losses += 1
                if num_losses > _MAX_RESUBMISSIONS:
                    raise NoWorkerError(f"workers were lost {num_losses} times: {error}") from error
                continue
            yield from rounds
            request = replace(request, first_round=request.first_round + len(rounds))

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are there now, by name; none once it is closed."""
        try:
            return self._slots.workers()
        except EngineClosedError:
            return []

    def _check_label(self, target: str) -> None:
        label = Target(target).label
        if label != self._slots.label:
            raise NoWorkerError(
                f"no worker serves {label}, which {target!r} needs: there is {self._slots.label}"
            )

    def close(self) -> None:
        """End the workers; a second call does nothing. What is under way is abandoned."""
        if self._slots.is_closed.is_set():
            return
        self._slots.is_closed.set()
        self._slots.client.close(timeout=_CLOSE_SECS)
        self._cluster.close(timeout=_CLOSE_SECS)


class _Slots:
    """The device slots of a cluster that serve one label, and the way to them."""

    def __init__(self, client: Client, label: str, num_slots: int) -> None:
        self.client = client
        self.label = label
        self.num_slots = num_slots
        self.sizer = BatchSizer()
        self.is_closed = Event()
        self._order = count()

    def submit(
        self, act: Callable[[str], str], request: MeasureRequest | CompareRequest
    ) -> Future[str]:
        """Have a request answered by whichever slot is free first."""
        with self._open():
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
        future = self.submit(slot.compare_batch, request)
        future.add_done_callback(lambda _: done.put(None))
        try:
            self.next_of(done)
            rounds = json.loads(future.result())
        except (NoWorkerError, EngineClosedError):
            raise
        except Exception as error:
            self.raise_if_closed()
            raise LostBatchError(repr(error)) from error
        finally:
            future.release()
        return [[Measurement.from_json(obj) for obj in measured] for measured in rounds]

    def next_of(self, done: SimpleQueue[ItemT]) -> ItemT:
        """Wait for something in a queue, as long as there is a worker that may put it there."""
        seen_at = monotonic()
        while True:
            self.raise_if_closed()
            try:
                return done.get(timeout=_POLL_SECS)
            except Empty:
                if self.workers():
                    seen_at = monotonic()
                elif monotonic() - seen_at > _NO_WORKER_SECS:
                    raise NoWorkerError("all workers are gone, and none came back") from None

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are there now, by name."""
        with self._open():
            scheduler = self.client.scheduler
            assert scheduler is not None
            identity = self.client.sync(scheduler.identity, n_workers=-1)
        return sorted(map(_facts, identity["workers"].values()), key=lambda worker: worker.name)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Say what it means when Dask fails because the engine was closed meanwhile."""
        self.raise_if_closed()
        try:
            yield
        except Exception:
            self.raise_if_closed()
            raise

    def raise_if_closed(self) -> None:
        """End what needs the engine when it is gone."""
        if self.is_closed.is_set():
            raise EngineClosedError("the engine was closed")


@dataclass(eq=False)
class _Batch:
    """Candidates that travel together; `num_losses` counts how often they were lost on the way."""

    indices: tuple[int, ...]
    num_losses: int = 0


class _Run:
    """One request on its way through the cluster."""

    def __init__(self, slots: _Slots, request: MeasureRequest) -> None:
        self._slots = slots
        self._request = request
        self._left = deque(range(len(request.traces)))
        self._in_flight: dict[_Batch, Future[str]] = {}
        # Dask tells of finished batches from a thread of its own.
        self._done: SimpleQueue[_Batch] = SimpleQueue()

    def results(self) -> Iterator[tuple[int, Measurement]]:
        """Yield each index with its measurement as batches come back."""
        while self._left or self._in_flight:
            self._fill()
            yield from self._read(self._slots.next_of(self._done))

    def abandon(self) -> None:
        """Let go of what has not begun; what has is measured in vain."""
        while self._in_flight:
            _, future = self._in_flight.popitem()
            future.release()

    def _fill(self) -> None:
        num_slots = self._slots.num_slots
        while self._left and len(self._in_flight) < _PER_SLOT * num_slots:
            size = self._slots.sizer.size(self._request.workload, len(self._left), num_slots)
            self._submit(_Batch(tuple(self._left.popleft() for _ in range(size))))

    def _submit(self, batch: _Batch) -> None:
        future = self._slots.submit(slot.measure_batch, self._request.part(batch.indices))
        self._in_flight[batch] = future
        future.add_done_callback(lambda _: self._done.put(batch))

    def _read(self, batch: _Batch) -> Iterator[tuple[int, Measurement]]:
        """Yield what a batch found; submit it again if it was lost."""
        future = self._in_flight.pop(batch)
        try:
            found = [Measurement.from_json(obj) for obj in json.loads(future.result())]
        except Exception as error:
            self._slots.raise_if_closed()
            batch.num_losses += 1
            if batch.num_losses <= _MAX_RESUBMISSIONS:
                self._submit(batch)
                return
            message = f"its worker was lost {batch.num_losses} times: {error!r}"
            lost = Measurement(error=ErrorKind.WORKER_LOST, message=message)
            found = [lost] * len(batch.indices)
        else:
            self._slots.sizer.learn(self._request.workload, found)
        finally:
            # A result that is kept would be computed again if its worker went.
            future.release()
        yield from zip(batch.indices, found, strict=True)


def _facts(worker: dict[str, Any]) -> WorkerFacts:
    told: dict[str, Any] = {**worker.get(slot.FACTS, {}), **worker["metrics"].get(slot.FACTS, {})}
    host, pid = str(told.pop("host", worker["host"])), int(told.pop("pid", 0))
    (label,) = worker["resources"]
    return WorkerFacts(
        name=f"{host}/{worker['name']}",
        host=host,
        label=label,
        pid=pid,
        is_busy=told.get("task") is not None,
        last_seen=worker["last_seen"],
        facts=told,
    )
