"""Reads of one statement each, without the round trips of a transaction.

A transaction of `Database.read` on PostgreSQL is a ping, a begin with its isolation level, the
statements, and a rollback. A statement that runs alone sees one state of the database anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, TypeVarTuple

from sqlalchemy import Connection, Engine, Row, Select
from sqlalchemy.exc import DBAPIError

Columns = TypeVarTuple("Columns")


class SingleReads:
    """Runs single statements on a connection of its own; safe to use from several threads.

    The connection is outside the pool, so that a read never waits for requests that use up the
    pool. It opens with the first read, and again after the server was restarted. `Database` closes
    it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(is_single=True)
        self._connection: Connection | None = None
        self._lock = Lock()

    @property
    def dialect_name(self) -> str:
        """The name of the kind of database."""
        return self._engine.dialect.name

    def rows(self, query: Select[*Columns], parameters: Mapping[str, Any]) -> list[Row[*Columns]]:
        """Return the rows of a query: all that was committed before the call is seen.

        Raises:
            DBAPIError: If the database does not respond.
        """
        with self._lock:
            is_new = self._connection is None
            try:
                return self._execute(query, parameters)
            except DBAPIError:
                self._close()
                if is_new:
                    raise
            return self._execute(query, parameters)

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        with self._lock:
            self._close()

    def _execute(
        self, query: Select[*Columns], parameters: Mapping[str, Any]
    ) -> list[Row[*Columns]]:
        if self._connection is None:
            connection = self._engine.connect()
            if self._engine.dialect.name == "postgresql":  # SQLite's driver is so from its opening
                connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()
            self._connection = connection
        return list(self._connection.execute(query, parameters))

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
