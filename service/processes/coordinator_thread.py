"""Start the coordinator and its workers in a thread, so that the HTTP side need not wait."""

from __future__ import annotations

from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from service.store import workers
from service.store.database.database import Database
from service.webhooks.allowed_addresses import AllowedAddresses
from service.webhooks.sender import WebhookSender
from workers.engine.engine import ClusterAddress, NoSessionError
from workers.libraries.load import chosen_libraries
from workers.startup_objects import keep_startup_objects

if TYPE_CHECKING:
    from service.coordinator.coordinators import Coordinators
    from service.processes.engine_supervisor import EngineSupervisor

_log = structlog.get_logger()

STOP_SECS = 5.0
"""Time limit of a stop for the current trial. A job that is not returned by then resumes too.
Chosen.
"""
_PUT_BACK_SECS = 3.0
"""Time for the return of jobs to the queue before the process ends. Chosen."""


class CoordinatorThread:
    """A coordinator over embedded workers, or several over those of a cluster.

    XGBoost and Dask take seconds to import on a busy host. The thread that starts them imports
    them, so that the first request is answered earlier. No other module does so.

    Raises:
        LibraryError: If `$LOOPWRIGHT_BASELINES` names an unknown library.
        ServeError: If `$LOOPWRIGHT_WEBHOOKS` is malformed.
    """

    def __init__(
        self,
        database: Database,
        num_workers: int,
        *,
        num_jobs: int = 1,
        plays: bool = False,
        cluster: ClusterAddress | None = None,
    ) -> None:
        chosen_libraries()  # an unknown name is an error now, not only when the first job ends
        self._sender = WebhookSender(database, AllowedAddresses.of_environment())
        self._database = database
        self._num_workers = num_workers
        self._num_jobs = num_jobs
        self._plays = plays
        self._cluster = cluster
        self._stopping = Event()
        self._coordinator: Coordinators | None = None
        self._workers: EngineSupervisor | None = None
        self._starter = Thread(target=self._start, name="background start", daemon=True)

    @property
    def is_running(self) -> bool:
        """Return whether the coordinator runs jobs, or is starting."""
        if self._coordinator is None:
            return self._starter.is_alive()
        return self._coordinator.is_running

    def open_session(self, target: str, owner: str) -> str:
        """Open a remote session on a worker; see `SessionEngine`."""
        return self._running_workers().open_session(target, owner)

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a session to its worker; see `SessionEngine`."""
        return self._running_workers().session_step(session, owner, frame)

    def close_session(self, session: str, owner: str) -> None:
        """End a session; see `SessionEngine`."""
        self._running_workers().close_session(session, owner)

    def _running_workers(self) -> EngineSupervisor:
        if self._workers is None:
            raise NoSessionError("the workers are starting: try again in a moment")
        return self._workers

    def start(self) -> None:
        """Start in a thread, and return at once."""
        self._starter.start()
        self._sender.start()

    def wake(self) -> None:
        """Poll the queue now."""
        if self._coordinator is not None:
            self._coordinator.wake()

    def stop(self, timeout_secs: float) -> None:
        """Return the current job to the queue, and end the workers."""
        self._stopping.set()
        self._starter.join(timeout_secs)
        has_stopped = self._coordinator is None or self._coordinator.stop(timeout_secs)
        if self._workers is not None:
            self._workers.close()
        self._sender.stop(timeout_secs)
        # Measurements in progress ended with the workers.
        if not has_stopped and self._coordinator and not self._coordinator.stop(_PUT_BACK_SECS):
            _log.warning("the coordinator did not stop in time; the next start resumes its job")

    def _start(self) -> None:
        try:
            with self._database.write() as session:
                workers.forget_lost(session)
            wiring = import_module("service.processes.wiring")
            self._workers, coordinator = wiring.coordinate(
                self._database,
                self._num_workers,
                num_jobs=self._num_jobs,
                plays=self._plays,
                cluster=self._cluster,
            )
        except Exception:
            # Health is "degraded" from now on; stored schedules are still served.
            _log.exception("the coordinator cannot start; jobs stay queued")
            return
        if not self._stopping.is_set():
            self._workers.begin()
            coordinator.start()
            self._coordinator = coordinator
            keep_startup_objects()
