"""Whether a database has changed: one number, at next to no cost where the database keeps one."""

from __future__ import annotations

import sqlite3
import threading

from service.store.database.database import Database
from service.store.database.file_health import connect


class DataVersion:
    """Tells changes of a database, by whichever process; safe to use from several threads.

    SQLite says on a connection whether any other has written since (`PRAGMA data_version`), without
    a look into a table. PostgreSQL says no such thing: the version is none then, ever unknown.
    """

    def __init__(self, database: Database) -> None:
        self._path = database.engine.url.database
        self._is_sqlite = database.engine.dialect.name == "sqlite"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def read(self) -> int | None:
        """Return a number that is another one after each change; none if it is unknown."""
        if not self._is_sqlite:
            return None
        with self._lock:
            if self._connection is None:
                assert self._path is not None
                # It only reads that number, and never waits for a lock.
                try:
                    self._connection = connect(self._path, check_same_thread=False)
                except sqlite3.OperationalError:  # the file was deleted
                    return None
            row: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
            return row[0]

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
