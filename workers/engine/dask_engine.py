"""The engine on dask.distributed.

Dask keeps the connections, and the workers alive. Batches are texts that the scheduler passes on
(`workers.engine.batch_exchange`). Candidates run in the child of a worker's process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Self

import dask
import structlog
from distributed import Client

from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from workers.engine import certificates
from workers.engine.batch_client import Answer, BatchClient, Loss
from workers.engine.dask_sessions import DaskSessions
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
from workers.engine.worker_list import connected_workers, raise_if_closed
from workers.measure.begun import begins_at_call
from workers.measure.compare import CompareRequest
from workers.wire.answers import AnswerError, read_batch
from workers.wire.request import MeasureRequest

_log = structlog.get_logger()

# Bounds that are chosen, not measured; Dask's default for a connection is 30 s.
_MAX_RESUBMISSIONS = 3  # a batch that is lost more often may be what ends its workers
_CLOSE_SECS = 5.0  # for the end of the cluster's processes
_CONNECT_SECS = 15.0


class DaskEngine:
    """Measures candidates on the workers of a Dask cluster; see `workers.engine.engine.Engine`.

    Use `embedded` or `connected` to make one.
    """

    def __init__(self, client: Client, end_cluster: Callable[[], object]) -> None:
        self._client = client
        self._batches = BatchClient(client)
        self._end_cluster = end_cluster
        self._is_closed = Event()
        self._sessions = DaskSessions(client, self._is_closed)
        self._slots: dict[str, DaskSlots] = {}

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
        engine = cls(client, partial(cluster.close, timeout=_CLOSE_SECS))
        workers = engine.workers()
        for worker in workers:
            if not worker.refusal:
                engine._open_slots(worker.label)
        if not engine._slots:
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
        return cls(client, lambda: None)

    @property
    def address(self) -> str:
        """Return the address of the scheduler."""
        scheduler = self._client.scheduler
        assert scheduler is not None
        return str(scheduler.address)

    @begins_at_call
    def measure(
        self, request: MeasureRequest, requester: Requester = ANYONE
    ) -> Iterator[tuple[int, Measurement] | None]:
        """Yield the index of each trace with its measurement, batch by batch.

        The first batches are sent at the call.

        Raises:
            NoWorkerError: If no worker serves the target.
            EngineClosedError: If the engine is closed, now or meanwhile.
            RequestInterruptedError: If the requester interrupts it.
        """
        slots = self._slots_for(request.target)
        run = _RoutedRequest(slots, request, requester)
        try:
            run.fill()
            yield None
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
                rounds = slots.compare(request, requester)
            except LostBatchError as error:
                num_losses += 1
                if num_losses > _MAX_RESUBMISSIONS:
                    raise NoWorkerError(f"workers were lost {num_losses} times: {error}") from error
                continue
            yield from rounds
            if request.libraries:
                return
            request = replace(request, first_round=request.first_round + len(rounds))

    def share(self, target: str, owner: str) -> float:
        """Return how many workers a request may expect; see `Engine`."""
        slots = self._slots.get(Target(target).label)
        return 1.0 if slots is None else slots.share(owner)

    def open_session(self, target: str, owner: str) -> str:
        """Open a session on a worker of a target; see `SessionEngine`."""
        return self._sessions.open(target, owner)

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a session to its worker; see `SessionEngine`."""
        return self._sessions.step(session, owner, frame)

    def close_session(self, session: str, owner: str) -> None:
        """End a session; see `SessionEngine`."""
        self._sessions.close(session, owner)

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are connected, by name; none once it is closed."""
        try:
            return connected_workers(self._client, self._is_closed)
        except EngineClosedError:
            return []

    def _slots_for(self, target: str) -> DaskSlots:
        raise_if_closed(self._is_closed)
        label = Target(target).label
        # Workers that are gone may be about to come back.
        if label in self._slots:
            return self._slots[label]
        if label in self._batches.slots(_CONNECT_SECS):
            return self._open_slots(label)
        workers = self.workers()
        raise_if_closed(self._is_closed)
        served_labels = sorted({worker.label for worker in workers if not worker.refusal})
        refusals = {w.refusal for w in workers if w.label == label}
        raise NoWorkerError(
            f"no worker serves {label}, which the target {target!r} needs (there is:"
            f" {', '.join(served_labels) or 'none at all'}); start `loopwright worker` on such a "
            "host and resume the job, or submit it for another target"
            + "".join(f"; one refuses work: {refusal}" for refusal in sorted(refusals))
        )

    def _open_slots(self, label: str) -> DaskSlots:
        return self._slots.setdefault(label, DaskSlots(self._batches, label, self._is_closed))

    def close(self) -> None:
        """Release the workers and abandon current work; a second call does nothing."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        try:
            self._client.close(timeout=_CLOSE_SECS)
        except Exception:
            # It raises what ended its attempts to connect again, as long as it has that task.
            _log.warning("the connection to the scheduler failed earlier", exc_info=True)
            self._client._handle_report_task = None
            with suppress(Exception):
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
        self._requester = requester
        self._left = deque(range(len(request.traces)))
        self._in_flight: dict[_Batch, int] = {}  # with their numbers
        # Answers come from another thread.
        self._answers: SimpleQueue[tuple[_Batch, Answer]] = SimpleQueue()

    def results(self) -> Iterator[tuple[int, Measurement]]:
        """Yield each index with its measurement as batches come back."""
        while self._left or self._in_flight:
            self.fill()
            batch, answer = self._slots.next_of(self._answers, self._requester)
            del self._in_flight[batch]
            yield from self._read(batch, answer)

    def abandon(self) -> None:
        """Drop the batches that have not begun; ignore the results of the others."""
        self._slots.drop(list(self._in_flight.values()))
        self._in_flight.clear()

    def fill(self) -> None:
        """Send batches until as many are in flight as may be."""
        while self._left and len(self._in_flight) < self._slots.max_in_flight:
            size = self._slots.size(self._request.workload, len(self._left))
            self._submit(_Batch(tuple(self._left.popleft() for _ in range(size))))

    def _submit(self, batch: _Batch) -> None:
        self._in_flight[batch] = self._slots.submit(
            self._request.part(batch.indices),
            self._requester,
            lambda answer: self._answers.put((batch, answer)),
        )

    def _read(self, batch: _Batch, answer: Answer) -> Iterator[tuple[int, Measurement]]:
        """Yield the results of a batch; submit it again if it was lost."""
        if answer is Loss.CONNECTION:
            self._submit(batch)
            return
        try:
            if answer is Loss.WORKER:
                raise AnswerError("its process ended")
            measurements = read_batch(answer, len(batch.indices))
        except AnswerError as error:
            batch.num_losses += 1
            if batch.num_losses <= _MAX_RESUBMISSIONS:
                self._submit(batch)
                return
            message = f"its worker was lost {batch.num_losses} times: {error}"
            lost = Measurement(error=ErrorKind.WORKER_LOST, message=message)
            measurements = [lost] * len(batch.indices)
        else:
            self._slots.sizer.learn(self._request.workload, measurements)
        yield from zip(batch.indices, measurements, strict=True)
