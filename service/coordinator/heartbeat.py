"""The heartbeat of leases: renews them while jobs run, and reads the controls of the jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from types import TracebackType
from typing import Self
from uuid import UUID

import structlog

from service.common.owner import Owner
from service.coordinator.pulse import Pulse
from service.store.database.database import Database
from service.store.jobs.controls import JobControls
from workers.engine.engine import alone

_log = structlog.get_logger()

PATIENCE_SECS = 3.0
"""Time for an ending job to finish its current batch, which lasts one or two seconds. Chosen."""


class Heartbeat:
    """Keeps the leases of a job, or of the jobs of a group, by a `Pulse`.

    Used as a context manager. `controls` holds the controls of each job as last read. `is_joined`
    says whether another job of the group waits to run with these. `standing` says how many workers
    the jobs may use beside others.

    Args:
        group_id: The group of the jobs, if they have one.
        interrupt: Called once for a job that must end and is still measured after `patience_secs`.
        pulse: Renews the leases of all jobs of the process; by default one for these jobs alone.
    """

    def __init__(
        self,
        database: Database,
        job_ids: Sequence[UUID],
        owner: Owner,
        *,
        group_id: UUID | None = None,
        interrupt: Callable[[], None],
        patience_secs: float = PATIENCE_SECS,
        pulse: Pulse | None = None,
    ) -> None:
        self.is_lost = False
        self.is_joined = False
        self.controls: dict[UUID, JobControls] = {}
        self.standing = alone()
        self.owner = owner
        self.group_id = group_id
        self._job_ids = tuple(job_ids)
        self._interrupt = interrupt
        self._patience_secs = patience_secs
        self._measured: tuple[UUID, bool] | None = None
        self._requested_at: dict[UUID, float] = {}
        self._pulse = pulse or Pulse(database)
        # Its log lines carry the id of the request that submitted the jobs.
        self._context = copy_context()

    def __enter__(self) -> Self:
        self._pulse.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pulse.remove(self)

    @property
    def job_ids(self) -> tuple[UUID, ...]:
        """The jobs whose leases are kept."""
        return self._job_ids

    def leave(self, job_id: UUID) -> None:
        """Stop renewing the lease of a job that is about to end."""
        self._job_ids = tuple(other for other in self._job_ids if other != job_id)

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

    def interrupt_overdue(self) -> None:
        """Interrupt the measurement of a job that should have ended `patience_secs` ago."""
        self._context.run(self._interrupt_overdue)

    def _interrupt_overdue(self) -> None:
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
