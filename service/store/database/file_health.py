"""Checks of an SQLite file: it is still the opened file, is writable, and is not damaged.

SQLite continues with a file that was deleted or replaced: it accepts writes, and all of them are
lost when the last process closes the file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

LEAST_FREE_BYTES = 64 << 20
"""Minimum free space of a ready service, for a batch of trials, the log and temporary tables.
Chosen.
"""


class DatabaseFile:
    """An open file and its identity."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = _identity(path)

    def loss(self) -> str | None:
        """Return why nothing may be written: the file was moved or deleted; else None."""
        try:
            identity = _identity(self._path)
        except OSError as error:
            return (
                f"the database file {self._path} was deleted or is not accessible "
                f"({error.strerror}): restore it, and restart the service"
            )
        if identity != self._identity:
            return (
                f"the database file {self._path} was replaced by another file: restart the service"
            )
        return None

    def shortage(self) -> str | None:
        """Return why a write would fail: no free space, or no permission; else None."""
        if not os.access(self._path, os.W_OK):
            return f"the database file {self._path} is not writable"
        free_bytes = shutil.disk_usage(self._path.parent).free
        if free_bytes < LEAST_FREE_BYTES:
            return (
                f"{free_bytes >> 20} MiB are free on the disk of {self._path}: free some space, "
                f"{LEAST_FREE_BYTES >> 20} MiB are required"
            )
        return None

    def damage(self) -> str | None:
        """Return the damage of the pages of the file, or None; read the whole file."""
        try:
            with closing(connect(self._path)) as connection:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            # A busy or unreachable file is not a damaged one.
            if isinstance(error, sqlite3.OperationalError):
                return None
            verdict = str(error)
        if verdict == "ok":
            return None
        detail = " ".join(str(verdict).split())
        return f"the database file {self._path} is damaged ({detail}): restore a backup"


def connect(path: Path | str, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """Open an existing file; do not create a missing one."""
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, check_same_thread=check_same_thread)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
