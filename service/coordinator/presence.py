"""The presence of coordinators: each process holds a session lock, and watches those of others.

A job whose owner's lock is free may be claimed before its lease expires. The lock is only a hint:
every write of an owner checks its lease, so a coordinator that lives without its lock loses its
jobs, but stores nothing into a job of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from service.store.database import session_locks
from service.store.database.database import Database
from service.store.database.error import log_error

_log = structlog.get_logger()

_LOOK_SECS = 0.25
"""Interval at which the locks are read, and a lost one is taken again. Chosen."""
_ABSENT_SECS = 1.5
"""How long a lock must be free before its process counts as gone. When PostgreSQL restarts, all
processes lose their locks, and take them again within two or three looks. Chosen.
"""


class Presence:
    """The session lock of this process, and a watch of those of others.

    Without such locks, on SQLite, it holds nothing, and no process is gone.

    Attributes:
        number: The number of the lock of this process, or None; see `Owner.lock`.
    """

    def __init__(self, database: Database) -> None:
        self.number = session_locks.new_number(database)
        self._database = database
        self._lock = Lock()  # of the next two
        self._users: list[Callable[[], None]] = []
        self._thread: Thread | None = None
        self._has_ended = Event()
        self._connection: Connection | None = None
        self._began_at = self._looked_at = 0.0
        self._held: set[int] = set()
        self._seen: set[int] = set()
        self._absent_since: dict[int, float] = {}

    @contextmanager
    def kept(self, on_gone: Callable[[], None]) -> Iterator[None]:
        """Hold the lock while the body runs; several threads may do so.

        Args:
            on_gone: Called when another process is gone.
        """
        if self.number is None:
            yield
            return
        with self._lock:
            self._users.append(on_gone)
            if self._thread is None:
                self._has_ended.clear()
                self._look()
                self._thread = Thread(target=self._watch, name="presence", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._users.remove(on_gone)
                if not self._users:
                    self._has_ended.set()
                    self._thread.join()
                    self._thread = None

    @property
    def is_held(self) -> bool:
        """Return whether this process may claim jobs: it holds its lock, or needs none."""
        return self.number is None or self._connection is not None

    @property
    def num_present(self) -> int:
        """The number of processes that held a lock at the last look, with this one."""
        return max(1, len(self._held))

    def is_gone(self, number: int) -> bool:
        """Return whether a lock has been free for a while, seen by this connection throughout."""
        if self._connection is None:
            return False
        unseen = self._looked_at if number in self._seen else self._began_at
        return self._looked_at - self._absent_since.get(number, unseen) > _ABSENT_SECS

    def _watch(self) -> None:
        while not self._has_ended.wait(_LOOK_SECS):
            self._look()
        self._close()

    def _look(self) -> None:
        """Read the locks that are held, and hold the own one."""
        assert self.number is not None
        try:
            if self._connection is None:
                self._begin(session_locks.hold(self._database, self.number))
            assert self._connection is not None
            held = session_locks.held(self._connection)
            if self.number not in held:  # a proxy may have changed the session
                session_locks.take(self._connection, self.number)
        except SQLAlchemyError as error:
            if self._connection is not None:
                log_error(_log, "the session lock is lost; taking it again", error)
            self._close()
        else:
            self._note(held)

    def _begin(self, connection: Connection) -> None:
        """Begin a watch: what an earlier connection saw says nothing about the time between."""
        self._absent_since.clear()
        self._seen.clear()
        self._began_at = self._looked_at = monotonic()
        self._connection = connection

    def _note(self, held: set[int]) -> None:
        now = monotonic()
        self._held = held
        self._seen |= held
        for number in self._seen - held:
            self._absent_since.setdefault(number, now)
        for number in held:
            self._absent_since.pop(number, None)
        earlier, self._looked_at = self._num_gone(), now
        if self._num_gone() > earlier:
            for on_gone in list(self._users):
                on_gone()

    def _num_gone(self) -> int:
        return sum(map(self.is_gone, self._absent_since))

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.close()
