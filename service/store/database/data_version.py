"""A number that changes with the content of a database, at almost no cost on SQLite."""

from __future__ import annotations

import sqlite3
import threading

from service.store.database.database import Database
from service.store.database.file_health import connect


class DataVersion:
    """Detects changes of a database by any process; safe to use from several threads.

    SQLite reports on a connection whether any other has written since (`PRAGMA data_version`),
    without reading a table. PostgreSQL has no such number: the version is always None.
    """

    def __init__(self, database: Database) -> None:
        self._path = database.engine.url.database
        self._is_sqlite = database.engine.dialect.name == "sqlite"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def read(self) -> int | None:
        """Return a number that differs after each change; None if it is unknown."""
        if not self._is_sqlite:
            return None
        with self._lock:
            if self._connection is None:
                assert self._path is not None
                # This connection only reads that number, and never waits for a lock.
                try:
                    self._connection = connect(self._path, check_same_thread=False)
                except sqlite3.OperationalError:  # the file was deleted
                    return None
            row: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
            return row[0]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
