"""One thread that keeps the leases of all jobs that a process runs.

A coordinator may run hundreds of jobs. One query reads the controls of all of them, and one
transaction renews all their leases: the load of the database does not grow with their number.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event, Lock, Thread
from typing import Protocol
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.common.owner import Owner
from service.store.database.database import Database
from service.store.database.error import log_error
from service.store.jobs import controls, groups, leases
from service.store.jobs.controls import JobControls
from workers.engine.engine import Standing

_log = structlog.get_logger()

_LOOK_SECS = 0.5
"""Interval at which the controls of jobs are read: a stop begins within it. Chosen."""


class Beating(Protocol):
    """Jobs of one owner, whose leases are kept; see `service.coordinator.heartbeat`."""

    is_lost: bool
    is_joined: bool
    controls: dict[UUID, JobControls]
    standing: Standing
    owner: Owner
    group_id: UUID | None

    @property
    def job_ids(self) -> tuple[UUID, ...]:
        """The jobs whose leases are kept."""
        ...

    def interrupt_overdue(self) -> None:
        """Interrupt the measurement of a job that should have ended."""
        ...


class Pulse:
    """Renews leases and reads controls from its own thread, which runs while there are jobs.

    A long step of a search cannot lose a lease.

    Args:
        lease_secs: How long a lease lasts without a renewal.
    """

    def __init__(self, database: Database, lease_secs: float = leases.LEASE_SECS) -> None:
        self._database = database
        self._reads = database.single_reads()
        self._lease_secs = lease_secs
        self._heartbeats: list[Beating] = []
        self._lock = Lock()  # of the list and the thread
        self._beating = Lock()
        self._has_left = Event()
        self._thread: Thread | None = None

    def add(self, heartbeat: Beating) -> None:
        """Read the controls of its jobs now, and keep their leases from now on."""
        self._look([heartbeat])
        with self._lock:
            self._heartbeats.append(heartbeat)
            if self._thread is None:
                self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)
                self._thread.start()

    def remove(self, heartbeat: Beating) -> None:
        """Keep its leases no longer: no beat that includes it is in progress afterwards."""
        with self._lock:
            self._heartbeats.remove(heartbeat)
        self._has_left.set()
        with self._beating:
            pass

    def _beat(self) -> None:
        renewed_at = time.monotonic()
        while True:
            self._has_left.wait(min(_LOOK_SECS, self._lease_secs / 3))
            self._has_left.clear()
            with self._beating:
                if not (heartbeats := self._current()):
                    return
                try:
                    if time.monotonic() - renewed_at > self._lease_secs / 3:
                        self._renew(heartbeats)
                        renewed_at = time.monotonic()
                    self._look(heartbeats)
                except SQLAlchemyError as error:
                    # The database may be busy for a while; a lease outlasts several beats.
                    log_error(_log, "heartbeat failed", error, num_jobs=len(heartbeats))
            for heartbeat in heartbeats:
                heartbeat.interrupt_overdue()

    def _current(self) -> list[Beating]:
        """Return the heartbeats; without any, the thread ends."""
        with self._lock:
            if not self._heartbeats:
                self._thread = None
            return list(self._heartbeats)

    def _renew(self, heartbeats: Sequence[Beating]) -> None:
        owners = {
            job_id: heartbeat.owner
            for heartbeat in heartbeats
            if not heartbeat.is_lost
            for job_id in heartbeat.job_ids
        }
        with self._database.write() as session:
            lost = leases.renew(session, owners, lease_secs=self._lease_secs)
        for heartbeat in heartbeats:
            # A job that ended meanwhile has left its heartbeat before.
            heartbeat.is_lost |= not lost.isdisjoint(heartbeat.job_ids)

    def _look(self, heartbeats: Sequence[Beating]) -> None:
        job_ids = [job_id for heartbeat in heartbeats for job_id in heartbeat.job_ids]
        read = controls.of_jobs(self._reads, job_ids)
        for heartbeat in heartbeats:
            heartbeat.controls |= {
                job_id: read[job_id] for job_id in heartbeat.job_ids if job_id in read
            }
            for job_id in heartbeat.job_ids[:1]:  # those of a group take turns
                heartbeat.standing = _standing(heartbeat.controls[job_id])
            if heartbeat.group_id is not None:
                heartbeat.is_joined = groups.has_waiting(self._reads, heartbeat.group_id)


def _standing(job: JobControls) -> Standing:
    return Standing(job.owner, job.priority)
