"""The thread that sends the events of webhooks; any number of processes may run one."""

from __future__ import annotations

from threading import Event, Thread

import structlog

from service.store import webhooks
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.webhooks import Clock
from service.webhooks.allowed_addresses import AllowedAddresses
from service.webhooks.deliver import deliver_all

_log = structlog.get_logger()

_IDLE_SECS = 1.0
"""Interval at which the outbox is polled. Chosen."""
_NO_DATABASE_SECS = 10.0
"""Pause after an error, for example of the database. Chosen."""
_MAX_AT_ONCE = 16
"""Attempts at the same time: slow receivers delay others by one time limit. Chosen."""


class WebhookSender:
    """Send the events of the outbox, those with the fewest attempts first.

    Args:
        allowed: The addresses that may receive events.
        clock: Returns the current time.
    """

    def __init__(
        self, database: Database, allowed: AllowedAddresses, *, clock: Clock = utc_now
    ) -> None:
        self._database = database
        self._reads = database.single_reads()
        self._allowed = allowed
        self._clock = clock
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_secs: float) -> None:
        """End the thread after its current attempts; one without a result is repeated later."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_secs)

    def send_due(self) -> int:
        """Send events that are due; return how many attempts were made."""
        if not webhooks.has_due(self._reads, self._clock()):
            return 0
        with self._database.write() as session:
            attempts = webhooks.begin_attempts(session, self._clock(), _MAX_AT_ONCE)
        errors = deliver_all(attempts, self._allowed, self._clock())
        with self._database.write() as session:
            for attempt, error in zip(attempts, errors, strict=True):
                webhooks.end_attempt(session, attempt, error, self._clock())
        for attempt, error in zip(attempts, errors, strict=True):
            log = _log.bind(event=str(attempt.event_id), attempt=attempt.number)
            log.info("webhook delivered") if error is None else log.warning(
                "webhook not delivered", reason=error
            )
        return len(attempts)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause_secs = 0.0 if self.send_due() else _IDLE_SECS
            except Exception:
                _log.exception("cannot send webhooks")
                pause_secs = _NO_DATABASE_SECS
            self._stopping.wait(pause_secs)
