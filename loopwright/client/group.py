"""A handle on several jobs of a server that share a budget of trials."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from loopwright.client.async_connection import AsyncConnection
from loopwright.client.connection import Connection
from loopwright.client.decoding import read
from loopwright.client.job import POLL_SECS, read_patiently
from loopwright.client.methods import Awaiting, Blocking, request
from loopwright.client.progress import TrialProgress
from loopwright.client.requests import checked
from loopwright.client.steps import HttpCall, Pause, Plan, send
from loopwright.errors import JobFailedError, WaitTimeoutError
from service.wire.models import GroupRead, JobState
from service.wire.requests import GroupChange


class GroupMethods:
    """The methods of a handle; handles hold no state, so make as many as you like."""

    id: UUID
    _connection: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._connection.url}>"

    @property
    def _path(self) -> str:
        return f"/groups/{self.id}"

    @request
    def read(self) -> Plan[GroupRead]:
        """Return the current state of the group, with its jobs in the order of the workloads."""
        return (yield from self._read())

    @request
    def cancel(self) -> Plan[GroupRead]:
        """Cancel the jobs that have not ended, and keep their trials."""
        return (yield from self._act("cancel"))

    @request
    def stop(self) -> Plan[GroupRead]:
        """Stop the search now; compare the fastest trials of each job, and keep the winner."""
        return (yield from self._act("stop"))

    @request
    def extend(self, *, max_trials: int) -> Plan[GroupRead]:
        """Set another total limit on trials, including the measured ones.

        Jobs that ended because the limit was reached continue.

        Raises:
            InvalidRequestError: If the limit is not possible.
            ConflictError: If all jobs have ended and none can continue.
        """
        change = checked(GroupChange, max_trials=max_trials)
        return read(
            GroupRead, (yield from send(HttpCall("PATCH", self._path, change, is_query=True)))
        )

    @request
    def wait(
        self, *, timeout_secs: float | None = None, progress: bool | None = None
    ) -> Plan[GroupRead]:
        """Wait until all jobs end; a cancelled job counts as ended.

        Args:
            timeout_secs: The maximum time to wait.
            progress: Whether to draw a progress bar; by default only on a terminal or notebook.

        Raises:
            JobFailedError: If a job ended without a kernel.
            WaitTimeoutError: If they did not end in time.
            ServerUnreachableError: If the server does not answer for a minute.
        """
        deadline = None if timeout_secs is None else time.monotonic() + timeout_secs
        group = yield from self._read()
        with TrialProgress(f"{len(group.jobs)} tasks", group.max_trials, show=progress) as bar:
            while True:
                bar.update(group.num_measured, group.best_secs, group.kind, group.speedup)
                if all(job.state.is_final for job in group.jobs):
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeoutError(
                        f"group {self.id} goes on after {timeout_secs:g} s,"
                        f" with {group.num_measured} of {group.max_trials} trials measured"
                    )
                yield Pause(POLL_SECS)
                group = yield from read_patiently(self._read)
        failed = [job for job in group.jobs if job.state is JobState.FAILED]
        if failed:
            raise JobFailedError("; ".join(f"job {job.id} failed: {job.error}" for job in failed))
        return group

    def _act(self, name: str) -> Plan[GroupRead]:
        return read(
            GroupRead, (yield from send(HttpCall("POST", f"{self._path}/{name}", is_query=True)))
        )

    def _read(self) -> Plan[GroupRead]:
        return read(GroupRead, (yield from send(HttpCall("GET", self._path))))


class GroupHandle(GroupMethods, Blocking):
    """Several jobs of a server, by the `id` of their group."""

    def __init__(self, connection: Connection, group_id: UUID) -> None:
        self.id = group_id
        self._connection = connection


class AsyncGroupHandle(GroupMethods, Awaiting):
    """Several jobs of a server, by the `id` of their group; its methods are awaited."""

    def __init__(self, connection: AsyncConnection, group_id: UUID) -> None:
        self.id = group_id
        self._connection = connection
