"""Embedded workers: an engine on this host, started when the first candidate comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Lock, Thread

import structlog
from sqlalchemy.exc import SQLAlchemyError

from compiler.runtime.measurement import Measurement
from service.store import workers
from service.store.database import Database
from workers.engine import Engine
from workers.request import MeasureRequest

_log = structlog.get_logger()

_REPORT_SECS = 15.0


class EmbeddedWorkers:
    """Measures requests with an engine of its own, and reports who its workers are.

    The engine costs some hundred megabytes, so it is started with the first request, not before;
    one that breaks is dropped, and the next request starts another.
    """

    def __init__(self, database: Database, start_engine: Callable[[], Engine]) -> None:
        self._database = database
        self._start_engine = start_engine
        self._engine: Engine | None = None
        self._lock = Lock()
        self._closed = Event()
        self._reporter = Thread(target=self._report, name="worker reports", daemon=True)

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each of the request's traces with its measurement."""
        engine = self._running()
        try:
            yield from engine.measure(request)
        except Exception:
            self._drop(engine)
            raise

    def close(self) -> None:
        """End the engine and its workers."""
        self._closed.set()
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            names = [worker.name for worker in engine.workers()]
            engine.close()
            with suppress(SQLAlchemyError), self._database.write() as session:
                workers.forget(session, names)

    def _running(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._start_engine()
                _log.info("workers started")
                if self._reporter.ident is None:
                    self._reporter.start()
            engine = self._engine
        self._report_once(engine)
        return engine

    def _drop(self, engine: Engine) -> None:
        with self._lock:
            if self._engine is engine:
                self._engine = None
        engine.close()

    def _report(self) -> None:
        while not self._closed.wait(_REPORT_SECS):
            if (engine := self._engine) is not None:
                self._report_once(engine)

    def _report_once(self, engine: Engine) -> None:
        try:
            with self._database.write() as session:
                workers.heard_of(session, engine.workers())
        except Exception:
            # Who the workers are is told again in a moment; measuring does not wait for it.
            _log.warning("cannot report the workers", exc_info=True)
