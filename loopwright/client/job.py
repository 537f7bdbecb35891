"""A handle on a tuning job of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from loopwright.client.async_connection import AsyncConnection
from loopwright.client.connection import Connection
from loopwright.client.decoding import read, read_event
from loopwright.client.frames import trials_frame
from loopwright.client.methods import Awaiting, Blocking, request, stream
from loopwright.client.pages import pages
from loopwright.client.progress import TrialProgress
from loopwright.client.requests import checked
from loopwright.client.steps import (
    HttpCall,
    Item,
    Listen,
    NextEvent,
    Pause,
    Plan,
    Stream,
    collect,
    send,
)
from loopwright.errors import (
    JobFailedError,
    ServerFailedError,
    ServerUnreachableError,
    WaitTimeoutError,
)
from service.wire.models import Event, EventKind, JobRead, JobState, TrialRead
from service.wire.requests import JobChange

if TYPE_CHECKING:
    import pandas as pd

RECONNECT_SECS = 60.0
"""The time for which a handle retries a server that stopped answering: a waiting client should
not notice a restart. Chosen.
"""
POLL_SECS = 0.5
"""Pause between two reads of a job. Chosen."""

T = TypeVar("T")


class JobMethods:
    """The methods of a handle; handles hold no state, so make as many as you like."""

    id: UUID
    _connection: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._connection.url}>"

    @property
    def _path(self) -> str:
        return f"/jobs/{self.id}"

    @request
    def read(self) -> Plan[JobRead]:
        """Return the current state of the job."""
        return (yield from self._read())

    @request
    def cancel(self) -> Plan[JobRead]:
        """Cancel the job and keep its trials; a job that has ended does not change."""
        return (yield from self._act("cancel"))

    @request
    def stop(self) -> Plan[JobRead]:
        """Stop the search now; compare the fastest trials, and end the job with the winner.

        Raises:
            ConflictError: If the job is being cancelled, or has ended without a result.
        """
        return (yield from self._act("stop"))

    @request
    def resume(self) -> Plan[JobRead]:
        """Resume a job that was cancelled or stopped, or that failed.

        Raises:
            ConflictError: If it has ended by a limit, which `extend` changes, or is about to end.
        """
        return (yield from self._act("resume"))

    @request
    def extend(
        self,
        *,
        max_trials: int | None = None,
        max_secs: float | None = None,
        plateau: int | None = None,
    ) -> Plan[JobRead]:
        """Set other total limits of the job; a job that has ended continues.

        A running job applies smaller limits with its next trial, others from its next round on.

        Args:
            max_trials: The number of trials, including the measured ones.
            max_secs: The time limit, from its start.
            plateau: The number of trials without progress after which it ends.

        Raises:
            InvalidRequestError: If no limit is given, or an invalid one.
            ConflictError: If the job has ended and the limits leave nothing to do.
        """
        budgets = {"max_trials": max_trials, "max_secs": max_secs, "plateau": plateau}
        changes = {name: value for name, value in budgets.items() if value is not None}
        return (yield from self._change(checked(JobChange, **changes)))

    @request
    def prioritize(self, priority: int) -> Plan[JobRead]:
        """Set the job's priority: queued jobs of higher priority start first."""
        return (yield from self._change(checked(JobChange, priority=priority)))

    @request
    def describe(
        self,
        *,
        name: str | None = None,
        note: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Plan[JobRead]:
        """Set the texts by which the job is found; an empty one removes the current one.

        Args:
            name: A short name.
            note: A longer text.
            tags: All its tags, such as `["nightly", "model:bert"]`: lower-case letters, digits and
                `._:/=+-`.

        Raises:
            InvalidRequestError: If no text is given, or an invalid one.
        """
        texts = {"name": name, "note": note, "tags": None if tags is None else tuple(tags)}
        changes = {field: text for field, text in texts.items() if text is not None}
        return (yield from self._change(checked(JobChange, **changes)))

    @stream
    def trials(
        self,
        *,
        outcome: Sequence[str] = (),
        sketch: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Stream[TrialRead]:
        """Yield the trials measured so far, in order.

        Args:
            outcome: Only those with this outcome: `ok`, or kinds of errors.
            sketch: Only those of this sketch.
            sort: `number`, `-number`, `best_secs` or `-best_secs`.
            limit: The maximum number of trials.
        """
        params = {"outcome": list(outcome) or None, "sketch": sketch, "sort": sort}
        yield from pages(TrialRead, f"{self._path}/trials", params, limit=limit)

    @request
    def to_pandas(self) -> Plan[pd.DataFrame]:
        """Return the trials measured so far as a table, one row a trial; see `docs/client.md`.

        Raises:
            ModuleNotFoundError: If pandas is not installed: `pip install 'loopwright[pandas]'`.
        """
        trials = yield from collect(pages(TrialRead, f"{self._path}/trials"))
        return trials_frame((self.id, trial) for trial in trials)

    @stream
    def events(self, *, after: int = 0) -> Stream[Event]:
        """Yield the job's events as they happen, until it ends.

        A broken stream continues after the last event received, so that each event comes once,
        also if the server restarts meanwhile.

        Args:
            after: The `id` of the last known event; 0 for all events.

        Raises:
            ServerUnreachableError: If the server does not answer for a minute.
        """
        alive_at = time.monotonic()
        has_ended = False
        while True:
            try:
                yield Listen(f"{self._path}/events", after)
                while (sent := (yield NextEvent())) is not None:
                    alive_at = time.monotonic()
                    event = read_event(sent)
                    after = event.id
                    # A job that went on after an end has another one.
                    has_ended = _is_end(event)
                    yield Item(event)
                if has_ended:
                    return
                # A job that ended while no stream was open has events still to be read.
                has_ended = (yield from self._read()).state.is_final
            except (ServerUnreachableError, ServerFailedError):
                if time.monotonic() - alive_at > RECONNECT_SECS:
                    raise
            yield Pause(POLL_SECS)

    @request
    def wait(
        self, *, timeout_secs: float | None = None, progress: bool | None = None
    ) -> Plan[JobRead]:
        """Wait until the job ends; a cancelled job counts as ended.

        Args:
            timeout_secs: The maximum time to wait.
            progress: Whether to draw a progress bar; by default only on a terminal or notebook.

        Raises:
            JobFailedError: If the job ended without a kernel.
            WaitTimeoutError: If it did not end in time.
            ServerUnreachableError: If the server does not answer for a minute.
        """
        deadline = None if timeout_secs is None else time.monotonic() + timeout_secs
        job = yield from self._read()
        with TrialProgress(job.workload_name, job.max_trials, show=progress) as bar:
            # Polling keeps to the deadline, which reading a silent stream would not.
            while True:
                bar.update(job.num_measured, job.best_secs, job.best_kind, job.speedup)
                if job.state.is_final:
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeoutError(
                        f"job {self.id} is {job.state} after {timeout_secs:g} s,"
                        f" with {job.num_measured} of {job.max_trials} trials measured"
                    )
                yield Pause(POLL_SECS)
                job = yield from read_patiently(self._read)
        if job.state is JobState.FAILED:
            raise JobFailedError(f"job {self.id} failed: {job.error or 'no reason given'}")
        return job

    def _act(self, name: str) -> Plan[JobRead]:
        response = yield from send(HttpCall("POST", f"{self._path}/{name}", is_query=True))
        return read(JobRead, response)

    def _change(self, change: JobChange) -> Plan[JobRead]:
        response = yield from send(HttpCall("PATCH", self._path, change, is_query=True))
        return read(JobRead, response)

    def _read(self) -> Plan[JobRead]:
        return read(JobRead, (yield from send(HttpCall("GET", self._path))))


class JobHandle(JobMethods, Blocking):
    """One job of a server, by its `id`."""

    def __init__(self, connection: Connection, job_id: UUID) -> None:
        self.id = job_id
        self._connection = connection


class AsyncJobHandle(JobMethods, Awaiting):
    """One job of a server, by its `id`; its methods are awaited, its iterators asynchronous."""

    def __init__(self, connection: AsyncConnection, job_id: UUID) -> None:
        self.id = job_id
        self._connection = connection


def read_patiently(ask: Callable[[], Plan[T]]) -> Plan[T]:
    """Read from a server that may not answer for a while."""
    lost_at = time.monotonic()
    while True:
        try:
            return (yield from ask())
        except ServerUnreachableError:
            if time.monotonic() - lost_at > RECONNECT_SECS:
                raise


def _is_end(event: Event) -> bool:
    if event.kind != EventKind.STATE:
        return False
    state = event.payload.get("state")
    return state in list(JobState) and JobState(str(state)).is_final
