"""The heartbeat of leases: renews them while jobs run, and reads the controls of the jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.common.errors import LeaseLostError
from service.common.owner import Owner
from service.store.database.database import Database
from service.store.database.error import log_error
from service.store.jobs import controls, groups, leases
from service.store.jobs.controls import JobControls

_log = structlog.get_logger()

_LOOK_SECS = 0.5
"""Interval at which the controls of jobs are read: a stop begins within it. Chosen."""
PATIENCE_SECS = 3.0
"""Time for an ending job to finish its current batch, which lasts one or two seconds. Chosen."""


class Heartbeat:
    """Renews leases from its own thread, so that a long step of the search cannot lose them.

    Used as a context manager. `controls` holds the controls of each job as last read. `is_joined`
    says whether another job of the group waits to run with these.

    Args:
        group_id: The group of the jobs, if they have one.
        interrupt: Called once for a job that must end and is still measured after `patience_secs`.
    """

    def __init__(
        self,
        database: Database,
        job_ids: Sequence[UUID],
        owner: Owner,
        *,
        group_id: UUID | None = None,
        interrupt: Callable[[], None],
        lease_secs: float = leases.LEASE_SECS,
        patience_secs: float = PATIENCE_SECS,
    ) -> None:
        self.is_lost = False
        self.is_joined = False
        self.controls: dict[UUID, JobControls] = {}
        self._database = database
        self._job_ids = list(job_ids)
        self._owner = owner
        self._group_id = group_id
        self._interrupt = interrupt
        self._lease_secs = lease_secs
        self._patience_secs = patience_secs
        self._measured: tuple[UUID, bool] | None = None
        self._requested_at: dict[UUID, float] = {}
        self._lock = Lock()
        self._ended = Event()
        # Its log lines carry the id of the request that submitted the jobs.
        beat = partial(copy_context().run, self._beat)
        self._thread = Thread(target=beat, name=f"heartbeat {job_ids[0]}", daemon=True)

    def __enter__(self) -> Self:
        self._look()
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

    @property
    def job_ids(self) -> tuple[UUID, ...]:
        """The jobs whose leases are kept."""
        return tuple(self._job_ids)

    def leave(self, job_id: UUID) -> None:
        """Stop renewing the lease of a job that is about to end."""
        with self._lock:
            self._job_ids.remove(job_id)

    @contextmanager
    def measuring(self, job_id: UUID, *, is_final: bool) -> Iterator[None]:
        """Mark a job as being measured, so that the heartbeat may interrupt it.

        Args:
            is_final: Whether its finalists are compared, which a stop does not interrupt.
        """
        self._measured = job_id, is_final
        try:
            yield
        finally:
            self._measured = None

    def _beat(self) -> None:
        renewed_at = time.monotonic()
        while not self._ended.wait(min(_LOOK_SECS, self._lease_secs / 3)):
            try:
                if time.monotonic() - renewed_at > self._lease_secs / 3:
                    self._renew()
                    renewed_at = time.monotonic()
                self._look()
            except LeaseLostError:
                self.is_lost = True
                return
            except SQLAlchemyError as error:
                # The database may be busy for a while; a lease outlasts several beats.
                log_error(_log, "heartbeat failed", error, jobs=list(map(str, self.job_ids)))
            self._interrupt_overdue()

    def _interrupt_overdue(self) -> None:
        """Interrupt the measurement of a job that should have ended `patience_secs` ago."""
        now = time.monotonic()
        for job_id, job_controls in self.controls.items():
            if job_controls.is_cancelled or job_controls.is_stopped:
                self._requested_at.setdefault(job_id, now)
        measured = self._measured
        if measured is None or measured[0] not in self._requested_at:
            return
        job_id, is_final = measured
        if is_final and not self.controls[job_id].is_cancelled:
            return
        if now - self._requested_at[job_id] >= self._patience_secs:
            # A cancel that follows a stop restarts the time.
            self._requested_at[job_id] = float("inf") if self.controls[job_id].is_cancelled else now
            _log.info("measurement interrupted: the job is ending", job=str(job_id))
            self._interrupt()

    def _renew(self) -> None:
        with self._lock, self._database.write() as session:
            for job_id in self._job_ids:
                leases.renew(session, job_id, self._owner, lease_secs=self._lease_secs)

    def _look(self) -> None:
        with self._database.read() as session:
            self.controls |= controls.of_jobs(session, self.job_ids)
            if self._group_id is not None:
                self.is_joined = groups.has_waiting(session, self._group_id)
