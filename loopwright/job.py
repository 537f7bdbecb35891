"""A handle on a tuning job of a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import UUID

from loopwright.connection import Connection, read, read_event
from loopwright.errors import JobFailedError, ServerUnreachableError, WaitTimeoutError
from loopwright.models import Event, EventKind, JobRead, JobState, Page, TrialRead
from loopwright.progress import TrialProgress

# How long a handle keeps calling a server that stopped answering: one that is started again after
# a crash resumes its jobs, and whoever waits for one should not notice.
RECONNECT_SECS = 60.0
_PAGE_LIMIT = 200
POLL_SECS = 0.5


class JobHandle:
    """One job of a server, by its `id`. Handles hold no state: make as many as you like."""

    def __init__(self, connection: Connection, job_id: UUID) -> None:
        self.id = job_id
        self._connection = connection
        self._path = f"/jobs/{job_id}"

    def __repr__(self) -> str:
        return f"JobHandle({str(self.id)!r})"

    def read(self) -> JobRead:
        """Return where the job stands now."""
        return read(JobRead, self._connection.get(self._path))

    def cancel(self) -> JobRead:
        """Stop the job and keep what was measured; a job that has ended stays as it is."""
        return read(JobRead, self._connection.post(f"{self._path}/cancel"))

    def trials(self) -> Iterator[TrialRead]:
        """Yield the trials measured so far, in order."""
        params: dict[str, str | int] = {"limit": _PAGE_LIMIT}
        while True:
            response = self._connection.get(f"{self._path}/trials", params=params)
            page = read(Page[TrialRead], response)
            yield from page.items
            if page.next_cursor is None:
                return
            params["cursor"] = page.next_cursor

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """Yield the job's events as they happen, until it ends.

        A stream that breaks is taken up after the last event seen, so that each event comes once.

        Args:
            after: The `id` of the last event already known; 0 for all of them.

        Raises:
            ServerUnreachableError: If the server stays away for a minute.
        """
        alive_at = time.monotonic()
        is_ending = False
        while True:
            try:
                for sent in self._connection.events(f"{self._path}/events", after=after):
                    alive_at = time.monotonic()
                    event = read_event(sent)
                    after = event.id
                    yield event
                    if _is_last(event):
                        return
                if is_ending:
                    return
                # A job that ended while no stream was open has events still to be read.
                is_ending = self.read().state.is_final
            except ServerUnreachableError:
                if time.monotonic() - alive_at > RECONNECT_SECS:
                    raise
            time.sleep(POLL_SECS)

    def wait(self, *, timeout_secs: float | None = None, progress: bool | None = None) -> JobRead:
        """Wait until the job ends; a cancelled job is an end like any other.

        Args:
            timeout_secs: How long to wait at most.
            progress: Whether to draw a progress bar; by default only on a terminal.

        Raises:
            JobFailedError: If the job ended without a kernel.
            WaitTimeoutError: If it did not end in time.
            ServerUnreachableError: If the server stays away for a minute.
        """
        deadline = None if timeout_secs is None else time.monotonic() + timeout_secs
        job = self.read()
        with TrialProgress(job.workload_name, job.trials, show=progress) as bar:
            # Asking now and then keeps to the deadline, which reading a silent stream would not.
            while True:
                bar.update(job.num_measured, job.best_secs, job.default_secs)
                if job.state.is_final:
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeoutError(
                        f"job {self.id} is {job.state} after {timeout_secs:g} s,"
                        f" with {job.num_measured} of {job.trials} trials measured"
                    )
                time.sleep(POLL_SECS)
                job = self._read_patiently()
        if job.state is JobState.FAILED:
            raise JobFailedError(f"job {self.id} failed: {job.error or 'no reason was given'}")
        return job

    def _read_patiently(self) -> JobRead:
        """Read the job from a server that may be away for a while."""
        lost_at = time.monotonic()
        while True:
            try:
                return self.read()
            except ServerUnreachableError:
                if time.monotonic() - lost_at > RECONNECT_SECS:
                    raise


def _is_last(event: Event) -> bool:
    if event.kind != EventKind.STATE:
        return False
    state = event.payload.get("state")
    return state in list(JobState) and JobState(str(state)).is_final
