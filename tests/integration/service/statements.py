"""Collect the statements that read tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from service.store.database.database import Database


@contextmanager
def statements(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that read, with their parameters, except those about tokens."""
    found: list[tuple[str, Any]] = []

    def note(_: Connection, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.lstrip().startswith("SELECT") and "tokens" not in statement:
            found.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
