"""Bring up the coordinator and its workers beside the HTTP side, which need not wait for them."""

from __future__ import annotations

from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from service.store import workers
from service.store.database.database import Database
from workers.engine.engine import ClusterAddress
from workers.libraries.load import chosen_libraries

if TYPE_CHECKING:
    from service.coordinator.coordinator import Coordinator
    from service.processes.engine_supervisor import EngineSupervisor

_log = structlog.get_logger()

_PUT_BACK_SECS = 3.0
"""Time for putting jobs back before the process ends. Chosen."""


class CoordinatorThread:
    """A coordinator over embedded workers.

    XGBoost and Dask take seconds to import on a busy host, and the first request should be
    answered before that; so they are imported by the thread that starts them, in this one place.

    Raises:
        LibraryError: If `$LOOPWRIGHT_BASELINES` names an unknown library.
    """

    def __init__(
        self,
        database: Database,
        num_workers: int,
        *,
        plays: bool = False,
        cluster: ClusterAddress | None = None,
    ) -> None:
        chosen_libraries()  # an unknown name is an error now, and not when the first job ends
        self._database = database
        self._num_workers = num_workers
        self._plays = plays
        self._cluster = cluster
        self._stopping = Event()
        self._coordinator: Coordinator | None = None
        self._workers: EngineSupervisor | None = None
        self._starter = Thread(target=self._start, name="background start", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether jobs are driven, or are about to be."""
        if self._coordinator is None:
            return self._starter.is_alive()
        return self._coordinator.is_running

    def start(self) -> None:
        """Begin to come up, and return at once."""
        self._starter.start()

    def wake(self) -> None:
        """Look for a job now."""
        if self._coordinator is not None:
            self._coordinator.wake()

    def stop(self, timeout_secs: float) -> None:
        """Put the job in hand back, and end the workers."""
        self._stopping.set()
        self._starter.join(timeout_secs)
        has_stopped = self._coordinator is None or self._coordinator.stop(timeout_secs)
        if self._workers is not None:
            self._workers.close()
        # What was under way ended with the workers.
        if not has_stopped and self._coordinator and not self._coordinator.stop(_PUT_BACK_SECS):
            _log.warning("the coordinator did not stop in time; the next start resumes its job")

    def _start(self) -> None:
        try:
            with self._database.write() as session:
                workers.forget_lost(session)
            wiring = import_module("service.processes.wiring")
            self._workers, coordinator = wiring.coordinate(
                self._database, self._num_workers, plays=self._plays, cluster=self._cluster
            )
        except Exception:
            # Health says "degraded" from now on, and stored schedules are still served.
            _log.exception("the coordinator cannot start; jobs stay queued")
            return
        if not self._stopping.is_set():
            self._workers.begin()
            coordinator.start()
            self._coordinator = coordinator
