"""The engine on dask.distributed.

Dask holds only as many batches as its slots can take now, receives only text, and runs only
`measure_batch` and `compare_batch` of `workers.engine.dask_worker`. Candidates run in that
process's child.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from random import random
from threading import Event
from typing import Self

import dask
from distributed import Client, Future

from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from workers.engine import certificates, dask_worker
from workers.engine.dask_settings import SETTINGS
from workers.engine.dask_slots import DaskSlots, LostBatchError
from workers.engine.engine import (
    ANYONE,
    ClusterAddress,
    EngineClosedError,
    EngineStartError,
    NoWorkerError,
    Requester,
    WorkerFacts,
)
from workers.engine.local_cluster import LocalCluster
from workers.engine.unpickling import restrict_dask
from workers.engine.worker_list import WorkerList, connected_workers, raise_if_closed
from workers.measure.compare import CompareRequest
from workers.wire.answers import read_batch
from workers.wire.request import MeasureRequest

# Bounds that are chosen, not measured; Dask's default for a connection is 30 s.
_MAX_RESUBMISSIONS = 3  # a batch that is lost more often may be what ends its workers
_CLOSE_SECS = 5.0  # for the end of the cluster's processes
_CONNECT_SECS = 15.0


class DaskEngine:
    """Measures candidates on the workers of a Dask cluster; see `workers.engine.engine.Engine`.

    Use `embedded` or `connected` to make one.
    """

    def __init__(
        self, client: Client, end_cluster: Callable[[], object], labels: Mapping[str, int]
    ) -> None:
        self._client = client
        self._end_cluster = end_cluster
        self._is_closed = Event()
        self._workers = WorkerList(client, self._is_closed)
        self._slots = {label: self._new_slots(label, num) for label, num in labels.items()}

    @classmethod
    def embedded(cls, num_workers: int = 1) -> Self:
        """Start workers on this host: some for its CPU, and one for each of its devices.

        Only this process and its workers can use them: they listen on loopback, behind TLS with
        keys made for the occasion. They die with this process, however it ends.

        Raises:
            EngineStartError: If they do not start, or their self-test fails.
        """
        restrict_dask()
        with dask.config.set(SETTINGS):
            try:
                cluster = LocalCluster(num_workers)
            except (OSError, RuntimeError) as error:
                raise EngineStartError(f"the workers can't be started: {error}") from error
        client = Client(cluster, set_as_default=False)
        workers = connected_workers(client, Event())
        labels = Counter(worker.label for worker in workers if not worker.refusal)
        engine = cls(client, partial(cluster.close, timeout=_CLOSE_SECS), labels)
        if not labels:
            engine.close()
            refusals = {worker.refusal for worker in workers}
            raise EngineStartError(f"no worker accepts work: {'; '.join(sorted(refusals))}")
        return engine

    @classmethod
    def connected(cls, cluster: ClusterAddress) -> Self:
        """Use the workers of a cluster that others started; they stay when this engine is closed.

        Raises:
            EngineStartError: If its scheduler does not answer.
        """
        restrict_dask()
        with dask.config.set(SETTINGS):
            try:
                client = Client(
                    cluster.url,
                    security=certificates.read(cluster.certificates),
                    set_as_default=False,
                    timeout=_CONNECT_SECS,
                )
            except OSError as error:
                raise EngineStartError(
                    f"the scheduler at {cluster.url} does not respond: {error}; start one with "
                    "`loopwright scheduler`, with the same certificates"
                ) from error
        return cls(client, lambda: None, {})

    @property
    def address(self) -> str:
        """Return the address of the scheduler."""
        scheduler = self._client.scheduler
        assert scheduler is not None
        return str(scheduler.address)

    def measure(
        self, request: MeasureRequest, requester: Requester = ANYONE
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, batch by batch.

        Raises:
            NoWorkerError: If no worker serves the target.
            EngineClosedError: If the engine is closed, now or meanwhile.
            RequestInterruptedError: If the requester interrupts it.
        """
        slots = self._slots_for(request.target)
        run = _RoutedRequest(slots, request, requester)
        try:
            yield from run.results()
        finally:
            run.abandon()

    def compare(
        self, request: CompareRequest, requester: Requester = ANYONE
    ) -> Iterator[list[Measurement]]:
        """Yield rounds, each measured by one worker: a measurement of each contestant.

        Raises:
            NoWorkerError: If no worker serves the target, or all that tried were lost.
            EngineClosedError: If the engine is closed, now or meanwhile.
            RequestInterruptedError: If the requester interrupts it.
        """
        slots = self._slots_for(request.target)
        num_losses = 0
        while request.first_round < request.num_rounds:
            try:
                rounds = slots.compare(
                    request, requester.is_interrupted, requester.standing().priority
                )
            except LostBatchError as error:
                num_losses += 1
                if num_losses > _MAX_RESUBMISSIONS:
                    raise NoWorkerError(f"workers were lost {num_losses} times: {error}") from error
                continue
            yield from rounds
            if request.libraries:
                return
            request = replace(request, first_round=request.first_round + len(rounds))

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are connected, by name; none once it is closed."""
        try:
            return self._workers.current()
        except EngineClosedError:
            return []

    def _slots_for(self, target: str) -> DaskSlots:
        label = Target(target).label
        workers = self._workers.recent()
        if not any(worker.label == label and not worker.refusal for worker in workers):
            workers = self._workers.current()
        num_served = Counter(worker.label for worker in workers if not worker.refusal)
        if label in self._slots:
            slots = self._slots[label]
            # Workers that are gone may be about to come back.
            slots.num_slots = num_served[label] or slots.num_slots
            return slots
        if label not in num_served:
            raise_if_closed(self._is_closed)
            served_labels = ", ".join(sorted({*num_served, *self._slots})) or "none at all"
            refusals = {w.refusal for w in workers if w.label == label}
            raise NoWorkerError(
                f"no worker serves {label}, which the target {target!r} needs (there is:"
                f" {served_labels}); start `loopwright worker` on such a host and resume the job, "
                "or submit it for another target"
                + "".join(f"; one refuses work: {refusal}" for refusal in sorted(refusals))
            )
        self._slots[label] = self._new_slots(label, num_served[label])
        return self._slots[label]

    def _new_slots(self, label: str, num_slots: int) -> DaskSlots:
        return DaskSlots(self._client, self._workers, label, num_slots, self._is_closed)

    def close(self) -> None:
        """Release the workers and abandon current work; a second call does nothing."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        self._client.close(timeout=_CLOSE_SECS)
        self._end_cluster()


@dataclass(eq=False)
class _Batch:
    """Candidates that are sent together; `num_losses` counts how often their worker was lost."""

    indices: tuple[int, ...]
    num_losses: int = 0


class _RoutedRequest:
    """One request in the cluster."""

    def __init__(self, slots: DaskSlots, request: MeasureRequest, requester: Requester) -> None:
        self._slots = slots
        self._request = request
        self._is_interrupted = requester.is_interrupted
        self._standing = requester.standing
        self._rounding = random()  # limits are small: rounded up or down, their mean is kept
        self._left = deque(range(len(request.traces)))
        self._in_flight: dict[_Batch, Future[str]] = {}
        # Dask reports finished batches from another thread.
        self._done: SimpleQueue[_Batch] = SimpleQueue()

    def results(self) -> Iterator[tuple[int, Measurement]]:
        """Yield each index with its measurement as batches come back."""
        while self._left or self._in_flight:
            self._fill()
            batch = self._slots.next_of(self._done, self._is_interrupted, self._in_flight.values)
            yield from self._read(batch)

    def abandon(self) -> None:
        """Cancel the batches that have not begun; ignore the results of the others."""
        while self._in_flight:
            _, future = self._in_flight.popitem()
            future.release()

    def _fill(self) -> None:
        num_slots = self._slots.num_slots
        most = int(self._standing().max_in_flight(num_slots) + self._rounding)
        while self._left and len(self._in_flight) < most:
            num = min(num_slots, most)
            size = self._slots.sizer.size(self._request.workload, len(self._left), num)
            self._submit(_Batch(tuple(self._left.popleft() for _ in range(size))))

    def _submit(self, batch: _Batch) -> None:
        request, priority = self._request.part(batch.indices), self._standing().priority
        future = self._slots.submit(dask_worker.measure_batch, request, priority)
        self._in_flight[batch] = future
        future.add_done_callback(lambda _: self._done.put(batch))

    def _read(self, batch: _Batch) -> Iterator[tuple[int, Measurement]]:
        """Yield the results of a batch; submit it again if it was lost."""
        future = self._in_flight.pop(batch)
        try:
            measurements = read_batch(future.result(), len(batch.indices))
        except Exception as error:
            self._slots.raise_if_closed()
            batch.num_losses += 1
            if batch.num_losses <= _MAX_RESUBMISSIONS:
                self._submit(batch)
                return
            message = f"its worker was lost {batch.num_losses} times: {error!r}"
            lost = Measurement(error=ErrorKind.WORKER_LOST, message=message)
            measurements = [lost] * len(batch.indices)
        else:
            self._slots.sizer.learn(self._request.workload, measurements)
        finally:
            # A result that is kept would be computed again if its worker went.
            future.release()
        yield from zip(batch.indices, measurements, strict=True)
