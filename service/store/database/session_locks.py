"""Session locks: locks of PostgreSQL that end with the connection that holds them.

A coordinator holds one while its process runs. So others see its end long before its leases expire,
whichever host it ran on. An SQLite file is used by processes of one host, which see each other.

A lock says only that its holder may be replaced. The lease alone says who owns a job.
"""

from __future__ import annotations

from secrets import randbelow

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from service.store.database.database import Database

_CLASS = 0x6C77_6F6C  # any other than those of other programs in the same database
_TAKE = text("SELECT pg_advisory_lock_shared(CAST(:class AS integer), CAST(:number AS integer))")
_HELD = text(
    "SELECT CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
    " AND classid = CAST(:class AS bigint) AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def new_number(database: Database) -> int | None:
    """Return a number for the lock of a process; None if the database has no such locks."""
    return randbelow(2**31) if database.engine.dialect.name == "postgresql" else None


def hold(database: Database, number: int) -> Connection:
    """Return a new connection that holds a lock, outside of the pool and of transactions."""
    connection = database.engine.connect()
    try:
        connection.execution_options(isolation_level="AUTOCOMMIT", is_aside=True)
        connection.detach()
        take(connection, number)
    except BaseException:
        connection.close()
        raise
    return connection


def take(connection: Connection, number: int) -> None:
    """Take a lock until the connection ends.

    It never waits: the server may not have noticed yet that an earlier connection is lost.
    """
    connection.execute(_TAKE, {"class": _CLASS, "number": number})


def held(connection: Connection | Session) -> set[int]:
    """Return the numbers of the locks that processes hold."""
    return set(connection.execute(_HELD, {"class": _CLASS}).scalars())
