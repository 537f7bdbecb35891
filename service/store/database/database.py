"""Open a database, SQLite or PostgreSQL, and run transactions on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

from service.common.errors import ServeError
from service.store.database import postgresql, sqlite
from service.store.database.error import DatabaseLostError
from service.store.database.file_health import DatabaseFile
from service.store.database.single_reads import SingleReads

_log = structlog.get_logger()

BUSY_TIMEOUT_SECS = 30.0
"""How long a writer waits for the database's lock: an import may hold it for seconds. Chosen."""
_EXPECTED = "expected sqlite:///PATH or postgresql://USER@HOST/NAME"


class Database:
    """An open database; safe to use from several threads."""

    def __init__(self, engine: Engine, url: URL, file: DatabaseFile | None = None) -> None:
        self.engine = engine
        self._url = url
        self._file = file
        self._damage: str | None = None
        self._writer = engine.execution_options(writes=True)
        self._single_reads: list[SingleReads] = []

    @property
    def url(self) -> str:
        """The URL with which any process of this host can open this database."""
        return self._url.render_as_string(hide_password=False)

    @property
    def shown(self) -> str:
        """The URL for a log, without a password."""
        return self._url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Run a read-only transaction: it sees one state of the database throughout."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self, aside: Connection | None = None) -> Iterator[Session]:
        """Run a transaction that may write; roll it back if an error leaves the body.

        Args:
            aside: A connection of `aside`, for a transaction that sees its temporary tables.

        Raises:
            DatabaseLostError: If the file is damaged, or was moved or deleted.
        """
        if (loss := self.loss()) is not None:
            raise DatabaseLostError(loss)
        writer = self._writer if aside is None else aside.execution_options(writes=True)
        with Session(writer, expire_on_commit=False) as session, session.begin():
            if aside is not None:
                session.connection()  # begin now: direct use of `aside` is in this transaction
            yield session

    @contextmanager
    def aside(self) -> Iterator[Connection]:
        """Yield a connection for transactions that write only to temporary tables.

        They wait for no other transaction, and the tables are dropped at the end of the body.
        """
        with self.engine.connect() as connection:
            connection.detach()  # in the pool it would keep its tables
            yield connection.execution_options(is_aside=True)

    def single_reads(self) -> SingleReads:
        """Return a new connection for reads of one statement each."""
        self._single_reads.append(SingleReads(self.engine))
        return self._single_reads[-1]

    def loss(self) -> str | None:
        """Return why a write would be lost; None if it is durable."""
        return self._damage or (None if self._file is None else self._file.loss())

    def trouble(self) -> str | None:
        """Return why the database cannot be written now; None if it can."""
        if self._file is None:
            return postgresql.refusal_to_write(self.engine)
        return self.loss() or self._file.shortage()

    def look_for_damage(self) -> None:
        """Check the whole file, and disable writes if it is damaged."""
        if self._file is not None and (damage := self._file.damage()) is not None:
            self.note_damage(damage)

    def note_damage(self, damage: str) -> None:
        """Disable writes, which would increase the damage."""
        if self._damage is None:
            _log.error("the database is damaged: writes are disabled", reason=damage)
        self._damage = damage

    def close(self) -> None:
        """Close all connections."""
        for reads in self._single_reads:
            reads.close()
        self.engine.dispose()


def open_database(
    url: str, *, busy_timeout_secs: float = BUSY_TIMEOUT_SECS, must_exist: bool = False
) -> Database:
    """Open the database at `url`, and migrate it to the current schema.

    A missing file is created; a PostgreSQL database must exist, and may be empty.

    Args:
        busy_timeout_secs: How long a transaction waits for others.
        must_exist: Whether to refuse a missing file: for a command that only reads, the name is
            mistyped.

    Raises:
        ServeError: If the URL is invalid, or its file is not a database, belongs to another
            program, was written by a newer version, or is not writable. The database does not
            change then.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "postgresql":
        # The URL of the engine lacks the file of the password.
        return Database(postgresql.open_engine(parsed, busy_timeout_secs), parsed)
    if must_exist and not (path := sqlite.path_of(parsed)).exists():
        raise ServeError(f"no database {path}")
    engine = sqlite.open_engine(parsed, busy_timeout_secs)
    return Database(engine, engine.url, DatabaseFile(sqlite.path_of(parsed)))


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ServeError(f"cannot read the database URL {url!r}: {_EXPECTED}") from None
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ServeError(f"cannot use a {parsed.get_backend_name()} database: {_EXPECTED}")
    return parsed
