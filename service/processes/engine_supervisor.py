"""Embedded workers: an engine on this host that runs while there is work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import TypeVar

import structlog

from compiler.runtime.measurement import Measurement
from service.store import workers
from service.store.database.database import Database
from service.store.database.error import log_error
from workers.engine.engine import (
    ANYONE,
    Engine,
    EngineStartError,
    Requester,
    RequestInterruptedError,
    Standing,
)
from workers.health.self_test import known_kernel
from workers.measure.begun import begins_at_call, closed_at_end
from workers.measure.compare import CompareRequest
from workers.remote.sessions import IDLE_SECS
from workers.wire.request import MeasureRequest

ItemT = TypeVar("ItemT")

_PER_WORKER_SECS = 0.02
"""Time between reports for each worker: in a list of a thousand, less than half are new then
(`workers.engine.batch_exchange`). Chosen.
"""
_log = structlog.get_logger()


class EngineSupervisor:
    """Measures requests with its own engine, and reports the workers.

    The engine takes some hundred megabytes, so it runs only while there is work. It starts with the
    first request, and ends after a time without requests. A broken engine is dropped, and the next
    request starts another.

    Args:
        labels: The kinds of target that its workers serve, even while none runs. Workers report
            others.
        stays: Whether the engine runs from `begin` on, with or without work, and is restarted after
            a failure. This is for workers of other processes, which must be known before the first
            job.
    """

    def __init__(
        self,
        database: Database,
        start_engine: Callable[[], Engine],
        *,
        labels: Collection[str] = (),
        stays: bool = False,
        rest_after_secs: float = 60.0,
        report_secs: float = 10.0,
    ) -> None:
        self._database = database
        self._start_engine = start_engine
        self._own_labels = frozenset(labels)
        self._labels = self._own_labels
        self._stays = stays
        self._is_missed = False  # a permanent engine does not start: logged once
        self._rest_after_secs = rest_after_secs
        self._report_secs = report_secs
        self._engine: Engine | None = None
        self._num_requests = 0
        self._num_seen = 0  # workers in the last report
        self._used_at = 0.0
        self._lock = Lock()
        self._closed = Event()
        self._look = Event()  # set if the engine failed or this is closed
        self._reporter = Thread(target=self._report, name="worker reports", daemon=True)

    def begin(self) -> None:
        """Start a permanent engine; otherwise do nothing."""
        if self._stays:
            self._reporter.start()

    def labels(self) -> Collection[str] | None:
        """Return the kinds of target that the workers serve, by their last report.

        None while a permanent engine has failed or has no worker: nothing can be measured.
        """
        can_measure = not self._stays or (self._has_engine() and self._labels)
        return self._labels if can_measure else None

    def measure(
        self, request: MeasureRequest, requester: Requester = ANYONE
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each of the request's traces with its measurement."""
        return self._results(lambda engine: engine.measure(request, requester))

    def compare(
        self, request: CompareRequest, requester: Requester = ANYONE
    ) -> Iterator[list[Measurement]]:
        """Yield rounds, each with a measurement of each of the request's traces."""
        return self._results(lambda engine: engine.compare(request, requester))

    def share(self, target: str, owner: str = "") -> float:
        """Return how many workers a request may expect; see `Engine`."""
        engine = self._engine
        return 1.0 if engine is None else engine.share(target, owner)

    def stand(self, standing: Callable[[], Standing]) -> None:
        """Do nothing: its workers serve one request at a time."""

    def open_session(self, target: str, owner: str) -> str:
        """Open a remote session on a worker; see `SessionEngine`."""
        return self._for_session(lambda engine: engine.open_session(target, owner))

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a session to its worker; see `SessionEngine`."""
        return self._for_session(lambda engine: engine.session_step(session, owner, frame))

    def close_session(self, session: str, owner: str) -> None:
        """End a session; see `SessionEngine`."""
        self._for_session(lambda engine: engine.close_session(session, owner))

    def _for_session(self, act: Callable[[Engine], ItemT]) -> ItemT:
        """Do something for a session; the engine stays as long as an idle session does."""
        engine = self._running()
        try:
            return act(engine)
        finally:
            with self._lock:
                self._num_requests -= 1
                self._used_at = monotonic() + IDLE_SECS

    def prove(self) -> None:
        """Measure a known kernel with the workers of this host; those of a cluster did so already.

        Raises:
            EngineStartError: If that fails: the host cannot measure any kernel.
        """
        if self._stays:
            return
        for _, measurement in self.measure(known_kernel()):
            if measurement.error is not None:
                raise EngineStartError(
                    "cannot measure the reference kernel on this host: "
                    f"{measurement.error}: {measurement.message}"
                )

    @begins_at_call
    def _results(self, ask: Callable[[Engine], Iterator[ItemT]]) -> Iterator[ItemT | None]:
        engine = self._running()
        try:
            with closed_at_end(ask(engine)) as results:
                yield None
                yield from results
        except RequestInterruptedError:
            raise  # the engine is sound
        except Exception:
            self._drop(engine)
            raise
        finally:
            with self._lock:
                self._num_requests -= 1
                self._used_at = max(self._used_at, monotonic())

    def close(self) -> None:
        """End the engine and its workers."""
        self._closed.set()
        self._look.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End the current request and its engine; the next request starts another."""
        with self._lock:  # waits for an engine that is starting
            engine = self._engine
        if engine is not None:
            self._drop(engine)

    def _has_engine(self) -> bool:
        return self._engine is not None

    def _running(self) -> Engine:
        """Return the engine, after starting it if necessary, and count a request on it."""
        with self._lock:
            engine = self._engine
            if engine is None:
                engine = self._engine = self._start_engine()
                _log.info("workers started")
                self._tell(engine)
                if self._reporter.ident is None:
                    self._reporter.start()
            self._num_requests += 1
        return engine

    def _drop(self, engine: Engine) -> None:
        with self._lock:
            if self._engine is not engine:
                return
            self._engine = None
        self._look.set()
        self._end(engine)

    def _end(self, engine: Engine) -> None:
        if self._stays:  # its workers continue without us
            engine.close()
            return
        # A broken engine may have lost its workers; they are then shown as lost.
        with suppress(Exception):
            # Read before the transaction, which blocks all other writers.
            names = [worker.name for worker in engine.workers()]
            with self._database.write() as session:
                workers.record_resting(session, names)
        engine.close()

    def _report(self) -> None:
        while not self._closed.is_set():
            self._attend()
            self._look.wait(max(self._report_secs, _PER_WORKER_SECS * self._num_seen))
            if self._look.is_set():
                self._look.clear()
                continue
            with self._lock:
                engine = self._engine
                idle_secs = monotonic() - self._used_at
                has_work = self._num_requests > 0 or idle_secs < self._rest_after_secs
                has_work |= self._stays
                if not has_work:
                    self._engine = None
            if engine is None:
                continue
            if has_work:
                if not self._tell(engine) and self._stays and not self._num_requests:
                    self._drop(engine)
            else:
                _log.info("workers stopped: the queue is empty")
                self._end(engine)

    def _attend(self) -> None:
        """Start a permanent engine that does not run."""
        if not self._stays or self._has_engine():
            return
        try:
            engine = self._start_engine()  # not under the lock: it may wait for a network
        except Exception as error:
            if not self._is_missed:
                _log.warning("cannot start workers; still trying", reason=str(error))
            self._is_missed = True
            return
        self._is_missed = False
        with self._lock:
            is_first = not (self._has_engine() or self._closed.is_set())
            if is_first:
                self._engine = engine
        if not is_first:
            engine.close()
            return
        _log.info("workers started")
        self._tell(engine)

    def _tell(self, engine: Engine) -> bool:
        """Report the workers; return whether the engine could list them."""
        try:
            seen = engine.workers()
        except Exception:
            # The workers report again soon; measuring does not wait for it.
            _log.warning("cannot list the workers of the engine", exc_info=True)
            return False
        self._num_seen = len(seen)
        self._labels = self._own_labels.union(w.label for w in seen if not w.refusal)
        try:
            with self._database.write() as session:
                workers.record_facts(session, seen)
        except Exception as error:
            log_error(_log, "cannot report the workers", error)
        return True
