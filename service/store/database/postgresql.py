"""PostgreSQL with the guarantees of SQLite: one transaction writes at a time.

A writing transaction first waits for one lock of the database, which it holds to its end. A read
before a write (does the row exist? which number is next?) is therefore correct, as on SQLite, and
events become visible in the order of their ids. Writes are short; reads take no locks, and use one
snapshot of the database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError

from service.common.errors import ServeError
from service.store.database import migrate
from service.store.database.base import json_text

PASSWORD_FILE = "password_file"
"""The parameter of a database URL that names a file with the password."""
_MAX_CONNECTIONS = 32
"""Connections of a process: a server has 100 by default, for several processes. Chosen."""
_NUM_KEPT = 24
"""Connections that stay open. A new one costs the server more than a query: under a load of 64
clients that look up schedules, 24 instead of 8 need a third of the server's processor time.
"""
_WRITE_LOCK = 0x6C6F6F7077726974  # "loopwrit"
_SILENCE_SECS = 3
"""After so long without an answer, a connection ends on both sides. So a host that vanished holds
neither the lock of writers nor its session lock; by default its connections last two hours. Chosen.
"""


def open_engine(url: URL, busy_timeout_secs: float) -> Engine:
    """Return an engine on an existing database, which may be empty, with the current schema.

    Raises:
        ServeError: If the driver or the database is missing, or if the database cannot store any
            text, belongs to another program or was written by a newer version. The database does
            not change then.
    """
    shown = url.render_as_string(hide_password=True)
    engine = _engine(url, busy_timeout_secs)
    try:
        with engine.execution_options(writes=True).begin() as connection:
            _refuse_encodings(connection, shown)
            _refuse_foreign_tables(connection, shown)
            migrate.upgrade(connection)
    except DBAPIError as error:
        engine.dispose()
        reason = str(error.orig).strip()
        raise ServeError(f"cannot use the database {shown}: {reason}") from error
    except ServeError:
        engine.dispose()
        raise
    return engine


def _read_password(path: str) -> str:
    """Return the password in a file, without the line end that editors add.

    Raises:
        ServeError: If the file cannot be read, or is empty.
    """
    try:
        password = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ServeError(f"cannot read the password file {path}: {reason}") from error
    if not password:
        raise ServeError(f"the password file {path} is empty")
    return password


def refusal_to_write(engine: Engine) -> str | None:
    """Return why a server refuses writes: it is a standby, or is read-only; else None."""
    with engine.connect() as connection:
        query = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')"
        is_standby, read_only = connection.execute(text(query)).one()
    if is_standby:
        return "the PostgreSQL server is a standby: it is read-only"
    return "the PostgreSQL database is read-only" if read_only == "on" else None


def _connection_settings(busy_timeout_secs: float) -> dict[str, Any]:
    """Return the parameters of connections, for libpq and, in `options`, for the server."""
    keepalives = {"idle": 1, "interval": 1, "count": _SILENCE_SECS - 1}
    of_server = {
        "timezone": "UTC",
        "lock_timeout": int(busy_timeout_secs * 1000),
        "tcp_user_timeout": 1000 * _SILENCE_SECS,
        **{f"tcp_keepalives_{name}": value for name, value in keepalives.items()},
    }
    return {
        "connect_timeout": 10,
        "application_name": "loopwright",
        "client_encoding": "utf8",  # that of the database may be none: texts would be bytes
        "options": " ".join(f"-c {name}={value}" for name, value in of_server.items()),
        "tcp_user_timeout": 1000 * _SILENCE_SECS,
        **{f"keepalives_{name}": value for name, value in keepalives.items()},
    }


def _engine(url: URL, busy_timeout_secs: float) -> Engine:
    password_file = url.query.get(PASSWORD_FILE)
    if password_file is not None and (url.password or not isinstance(password_file, str)):
        raise ServeError(
            f"cannot use the database {url.render_as_string(hide_password=True)}: expected one "
            f"password, or one {PASSWORD_FILE}"
        )
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg").difference_update_query([PASSWORD_FILE]),
            connect_args=_connection_settings(busy_timeout_secs),
            pool_size=_NUM_KEPT,
            max_overflow=_MAX_CONNECTIONS - _NUM_KEPT,
            # The connection that was used last has the statements prepared, and its server's
            # process is in the caches of the processor.
            pool_use_lifo=True,
            json_serializer=json_text,
            pool_pre_ping=True,  # the server may have been restarted
        )
    except ImportError as error:
        raise ServeError(
            "a PostgreSQL database requires a driver: install loopwright[postgresql]"
        ) from error
    event.listen(engine, "begin", _begin)
    if isinstance(password_file, str):
        # Read for each connection: a new password needs no restart.
        @event.listens_for(engine, "do_connect")
        def _add_password(_dialect: Any, _record: Any, _args: Any, params: dict[str, Any]) -> None:
            params["password"] = _read_password(password_file)

    return engine


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("writes", False):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
    elif options.get("is_single", False):  # no transaction: each statement commits
        pass
    elif not options.get("is_aside", False):  # which no transaction that only reads may be
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))


def _refuse_encodings(connection: Connection, shown: str) -> None:
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise ServeError(
            f"cannot use the database {shown}: its encoding is {encoding}, which cannot "
            "store every text; create it with `createdb --encoding=UTF8 --template=template0`"
        )


def _refuse_foreign_tables(connection: Connection, shown: str) -> None:
    tables = inspect(connection).get_table_names()
    if migrate.VERSION_TABLE in tables:
        revisions: Any = connection.execute(
            text(f"SELECT * FROM {migrate.VERSION_TABLE}")
        ).scalars()
        migrate.refuse_newer(revisions.all(), shown)
    elif tables:
        raise ServeError(f"{shown} is the database of another program: it has no Loopwright tables")
