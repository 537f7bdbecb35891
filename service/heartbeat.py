"""The heartbeat of a lease: keeps it while a job runs, and hears that it must stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.errors import LeaseLostError
from service.owner import Owner
from service.store import jobs, leases
from service.store.database import Database

_log = structlog.get_logger()

_LOOK_SECS = 0.5
PATIENCE_SECS = 3.0
"""How long a cancelled job may finish the batch in hand, which lasts one or two seconds."""


class Heartbeat:
    """Renews a lease from a thread of its own, so that a long step of the search cannot lose it.

    Used as a context manager. `is_cancelled` and `is_lost` only ever turn true.

    Args:
        interrupt: Called once if the job is cancelled and does not end within `patience_secs`.
    """

    def __init__(
        self,
        database: Database,
        job_id: UUID,
        owner: Owner,
        *,
        interrupt: Callable[[], None],
        lease_secs: float = leases.LEASE_SECS,
        patience_secs: float = PATIENCE_SECS,
    ) -> None:
        self.is_cancelled = False
        self.is_lost = False
        self._database = database
        self._job_id = job_id
        self._owner = owner
        self._interrupt = interrupt
        self._lease_secs = lease_secs
        self._patience_secs = patience_secs
        self._ended = Event()
        self._thread = Thread(target=self._beat, name=f"heartbeat {job_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        renewed_at = time.monotonic()
        while True:
            try:
                if time.monotonic() - renewed_at > self._lease_secs / 3:
                    self._renew()
                    renewed_at = time.monotonic()
                else:
                    self._look()
            except LeaseLostError:
                self.is_lost = True
                return
            except SQLAlchemyError:
                # The database may be busy for a while; the lease outlasts several beats.
                _log.warning("heartbeat failed", job=str(self._job_id), exc_info=True)
            if self.is_cancelled:
                self._end_in_time()
                return
            if self._ended.wait(min(_LOOK_SECS, self._lease_secs / 3)):
                return

    def _end_in_time(self) -> None:
        if self._ended.wait(self._patience_secs):
            return
        _log.info("measuring is interrupted: the job was cancelled", job=str(self._job_id))
        self._interrupt()

    def _renew(self) -> None:
        with self._database.write() as session:
            leases.renew(session, self._job_id, self._owner, lease_secs=self._lease_secs)

    def _look(self) -> None:
        with self._database.read() as session:
            self.is_cancelled |= jobs.get(session, self._job_id).cancel_requested
