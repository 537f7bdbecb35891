"""SQLite, with the settings that concurrent writers need.

The creator of the file switches the write-ahead log on. A transaction that may write starts with
`BEGIN IMMEDIATE`: SQLite refuses one that reads first and writes later instead of letting it wait
for the lock. A busy timeout and foreign keys are on. A foreign file is refused before any byte of
it changes.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from service.common.errors import ServeError
from service.store.database import migrate
from service.store.database.base import json_text

_MAGIC = b"SQLite format 3\0"
_SWITCH_SECS = 30.0


def open_engine(url: URL, busy_timeout_secs: float) -> Engine:
    """Return an engine on a file with the current schema; create a missing file.

    Raises:
        ServeError: If the file is not a database, belongs to another program, was written by a
            newer version, or is not writable. The file does not change then.
    """
    path = path_of(url)
    _refuse_foreign_file(path)
    engine = _engine(path, busy_timeout_secs)
    try:
        if not path.exists():
            path.touch()
    except OSError as error:
        raise ServeError(f"cannot create the database {path}: {error.strerror}") from error
    try:
        with engine.connect() as connection:
            _use_write_ahead_log(connection)
        with engine.execution_options(writes=True).begin() as connection:
            migrate.upgrade(connection)
    except DBAPIError as error:
        engine.dispose()
        raise ServeError(f"cannot use the database {path}: {error.orig}") from error
    return engine


def path_of(url: URL) -> Path:
    """Return the file that a URL names.

    Raises:
        ServeError: If the URL names no file.
    """
    if not url.database or url.database == ":memory:" or url.query:
        raise ServeError(f"the database URL {str(url)!r} has no file: expected sqlite:///PATH")
    return Path(url.database).absolute()


def _refuse_foreign_file(path: Path) -> None:
    """Refuse a file that is not a database of this program, without changing it.

    Raises:
        ServeError: If the file exists and is not a database that this version may write.
    """
    if not path.parent.is_dir():
        raise ServeError(f"cannot create the database {path}: {path.parent} is not a directory")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise ServeError(f"cannot read the database {path}: {error.strerror}") from error
    if not head:
        return
    if head != _MAGIC:
        raise ServeError(f"{path} is not an SQLite database")
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            ours = migrate.VERSION_TABLE in tables
            revisions = (
                [row[0] for row in connection.execute(f"SELECT * FROM {migrate.VERSION_TABLE}")]
                if ours
                else []
            )
    except sqlite3.DatabaseError as error:
        raise ServeError(f"cannot read the database {path}: {error}") from error
    if tables and not ours:
        raise ServeError(f"{path} is the database of another program: it has no Loopwright tables")
    migrate.refuse_newer(revisions, str(path))


def _engine(path: Path, busy_timeout_secs: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_timeout_secs},
        # One connection for each thread that answers requests: further ones would be opened each
        # time.
        pool_size=40,
        max_overflow=32,
        json_serializer=json_text,
        pool_use_lifo=True,
    )
    event.listen(engine, "do_connect", partial(_connect, path))
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _connect(path: Path, _dialect: Any, _record: Any, args: list[Any], options: Any) -> None:
    # A deleted file must not reappear empty: only `open_engine` creates one.
    args[0] = f"{path.as_uri()}?mode=rw"
    options["uri"] = True


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own transactions begin late and are never immediate, so `_begin` begins them.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("is_single", False):  # no transaction: each statement commits
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes", False) else "BEGIN")


def _use_write_ahead_log(connection: Connection) -> None:
    """Switch the write-ahead log on; this setting of the file is permanent."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    # The switch ignores the busy timeout, and two services may create the file at the same time.
    deadline = time.monotonic() + _SWITCH_SECS
    while raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            raw.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
