"""Open a database, and run transactions on it.

SQLite by the rules that were learned the hard way: write-ahead log (switched on once, by whoever
creates the file), `BEGIN IMMEDIATE` for whatever may write (a transaction that reads first and
writes later cannot wait for a lock: SQLite refuses it at once), a busy timeout, foreign keys on.
A file that is not ours to write is refused before a byte of it changes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session

from service.errors import ServeError
from service.store import migrate

BUSY_TIMEOUT_SECS = 30.0
_SQLITE_MAGIC = b"SQLite format 3\0"


class Database:
    """An open database; safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer = engine.execution_options(writes=True)

    @property
    def url(self) -> str:
        """What `open_database` opens this database by, in any process of this host."""
        return self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Run a transaction that only reads: it sees one state of the database throughout."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Run a transaction that may write: all of it is kept, or nothing if an error leaves it."""
        with Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_database(url: str, *, busy_timeout_secs: float = BUSY_TIMEOUT_SECS) -> Database:
    """Open the database at `url`, and bring its schema up to date.

    A file that does not exist is created.

    Args:
        busy_timeout_secs: How long a transaction waits for those of other processes.

    Raises:
        ServeError: If the URL cannot be used, the file is not a database, is somebody else's, was
            written by a newer version, or cannot be written. The file is then as it was.
    """
    path = _path_of(_parse(url))
    _refuse_foreign_file(path)
    engine = _sqlite_engine(path, busy_timeout_secs)
    try:
        with engine.connect() as connection:
            _use_write_ahead_log(connection)
        with engine.execution_options(writes=True).begin() as connection:
            migrate.upgrade(connection)
    except DBAPIError as error:
        engine.dispose()
        raise ServeError(f"cannot use the database {path}: {error.orig}") from error
    return Database(engine)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ServeError(
            f"cannot read the database URL {url!r}: expected sqlite:///PATH, "
            "such as sqlite:///loopwright.db"
        ) from None
    if parsed.get_backend_name() != "sqlite":
        raise ServeError(
            f"cannot use a {parsed.get_backend_name()} database: expected sqlite:///PATH"
        )
    return parsed


def _path_of(url: URL) -> Path:
    if not url.database or url.database == ":memory:" or url.query:
        raise ServeError(f"the database URL {str(url)!r} names no file: expected sqlite:///PATH")
    return Path(url.database).absolute()


def _refuse_foreign_file(path: Path) -> None:
    """Look at a file without changing it.

    Raises:
        ServeError: If it is there and is not a database that this version may write.
    """
    if not path.parent.is_dir():
        raise ServeError(f"cannot create the database {path}: {path.parent} is not a directory")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise ServeError(f"cannot read the database {path}: {error.strerror}") from error
    if not head:
        return
    if head != _SQLITE_MAGIC:
        raise ServeError(f"{path} is not a database: it does not begin as an SQLite file does")
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
        raise ServeError(f"{path} is a database of something else: it holds no Loopwright tables")
    for revision in revisions:
        if not migrate.is_known(revision):
            raise ServeError(
                f"{path} was written by a newer version of Loopwright: its schema revision is "
                f"{revision!r}, this version knows up to {migrate.head()!r}; upgrade Loopwright, "
                "or use another file"
            )


def _sqlite_engine(path: Path, busy_timeout_secs: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_timeout_secs},
        pool_size=8,
        max_overflow=64,
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver would begin transactions by itself, late and never immediate: `_begin` does it.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _use_write_ahead_log(connection: Connection) -> None:
    """Switch the write-ahead log on, once in a file's life."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    # The switch does not honour the busy timeout, and two services may create the file at once.
    deadline = time.monotonic() + BUSY_TIMEOUT_SECS
    while raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            raw.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
