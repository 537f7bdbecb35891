"""The heartbeat of leases: keeps them while jobs run, and hears what is wanted of the jobs."""

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
from service.store.jobs import controls, groups, leases
from service.store.jobs.controls import JobControls

_log = structlog.get_logger()

_LOOK_SECS = 0.5
"""Pause between two looks at what users requested: a stop begins within it. Chosen."""
PATIENCE_SECS = 3.0
"""Time in which a job that ends may finish its current batch, which lasts one or two seconds.
Chosen.
"""


class Heartbeat:
    """Renews leases from a thread of its own, so that a long step of the search cannot lose them.

    Used as a context manager. `wishes` has what is wanted of each job, as of the last look;
    `is_joined` says whether a job of the group waits to be driven with the others.

    Args:
        group_id: Of the jobs, if they are of one.
        interrupt: Called once for a job that is to end and is measured for `patience_secs` more.
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
        self.wishes: dict[UUID, JobControls] = {}
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
        # What it logs stands under the request that the jobs came with.
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
        """Renew the lease of a job no more: it is about to end."""
        with self._lock:
            self._job_ids.remove(job_id)

    @contextmanager
    def measuring(self, job_id: UUID, *, is_final: bool) -> Iterator[None]:
        """Say that a job is measured meanwhile, so that it may have to be interrupted.

        Args:
            is_final: Whether its best are compared, which is how a job is stopped.
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
            except SQLAlchemyError:
                # The database may be busy for a while; the lease outlasts several beats.
                _log.warning("heartbeat failed", jobs=list(map(str, self.job_ids)), exc_info=True)
            self._interrupt_overdue()

    def _interrupt_overdue(self) -> None:
        """Interrupt what is measured for a job that was to end some time ago."""
        now = time.monotonic()
        for job_id, wishes in self.wishes.items():
            if wishes.is_cancelled or wishes.is_stopped:
                self._requested_at.setdefault(job_id, now)
        measured = self._measured
        if measured is None or measured[0] not in self._requested_at:
            return
        job_id, is_final = measured
        if is_final and not self.wishes[job_id].is_cancelled:
            return
        if now - self._requested_at[job_id] >= self._patience_secs:
            # The time counts again for a cancel that follows a stop.
            self._requested_at[job_id] = float("inf") if self.wishes[job_id].is_cancelled else now
            _log.info("measurement interrupted: the job is ending", job=str(job_id))
            self._interrupt()

    def _renew(self) -> None:
        with self._lock, self._database.write() as session:
            for job_id in self._job_ids:
                leases.renew(session, job_id, self._owner, lease_secs=self._lease_secs)

    def _look(self) -> None:
        with self._database.read() as session:
            self.wishes |= controls.wishes(session, self.job_ids)
            if self._group_id is not None:
                self.is_joined = groups.has_waiting(session, self._group_id)
