"""Insert or update many rows by one statement.

On PostgreSQL each column is one array: a statement for each row would cost the client and the
server several times as much. An array is sent as its literal, made here: psycopg escapes each
element by regular expressions, which took a third of a busy coordinator's processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import JSON, Column, Float, String, Table, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session

from service.store.database.base import json_text

ItemT = TypeVar("ItemT")

_MAX_STATEMENTS = 64
"""Texts of statements that are kept: a few for each of some tables. Chosen."""

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows by the names of their columns; all have the same ones."""


def padded(values: Collection[ItemT]) -> list[ItemT]:
    """Return values, the last one repeated up to a power of two, for `IN` with many parameters.

    Few lengths make few texts of a statement, each of which the server prepares once.
    """
    items = list(values)
    return items + items[-1:] * ((1 << (len(items) - 1).bit_length()) - len(items))


def insert_rows(session: Session, table: Table, rows: Rows) -> None:
    """Insert rows into a table."""
    connection = session.connection()
    if connection.dialect.name != "postgresql":
        connection.execute(table.insert(), list(rows))
        return
    statement = _insertion(table, tuple(rows[0]), connection.dialect)
    connection.exec_driver_sql(statement.text, statement.values(rows))


def update_rows(session: Session, table: Table, key: str, rows: Rows) -> None:
    """Set the columns of rows that exist.

    Args:
        key: The name of the column that identifies a row.
    """
    connection = session.connection()
    if connection.dialect.name != "postgresql":
        changed = [name for name in rows[0] if name != key]
        statement = table.update().where(table.c[key] == bindparam("key_"))
        values: dict[str, Any] = {table.c[name].name: bindparam(name) for name in changed}
        connection.execute(
            statement.values(values), [{"key_": row[key], **_without(row, key)} for row in rows]
        )
        return
    update = _update(table, key, tuple(rows[0]), connection.dialect)
    connection.exec_driver_sql(update.text, update.values(rows))


@dataclass(frozen=True)
class _RowStatement:
    """A statement for many rows on PostgreSQL; `columns` convert the values of each column."""

    text: str
    columns: Mapping[str, Callable[[Any], Any]]

    def values(self, rows: Rows) -> dict[str, str]:
        """Return the parameters: the literal of an array for each column."""
        return {
            name: array_literal(
                [None if (value := row[name]) is None else convert(value) for row in rows]
            )
            for name, convert in self.columns.items()
        }


@lru_cache(_MAX_STATEMENTS)
def _insertion(table: Table, names: tuple[str, ...], dialect: Dialect) -> _RowStatement:
    columns = [table.c[name] for name in names]
    text = f"INSERT INTO {table.name} ({_names(columns)}) SELECT * FROM {_arrays(columns, dialect)}"
    return _RowStatement(text, _converters(columns, dialect))


@lru_cache(_MAX_STATEMENTS)
def _update(table: Table, key: str, names: tuple[str, ...], dialect: Dialect) -> _RowStatement:
    columns = [table.c[name] for name in names]
    changed = [column for column in columns if column.name != key]
    settings = ", ".join(f"{column.name} = new.{column.name}" for column in changed)
    text = (
        f"UPDATE {table.name} SET {settings}"
        f" FROM {_arrays(columns, dialect)} AS new ({_names(columns)})"
        f" WHERE {table.name}.{key} = new.{key}"
    )
    return _RowStatement(text, _converters(columns, dialect))


def _converters(
    columns: Sequence[Column[Any]], dialect: Dialect
) -> dict[str, Callable[[Any], Any]]:
    return {column.name: _converter(column, dialect) for column in columns}


def _without(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


def _names(columns: Sequence[Column[Any]]) -> str:
    return ", ".join(column.name for column in columns)


def _arrays(columns: Sequence[Column[Any]], dialect: Dialect) -> str:
    arrays = (f"%({column.name})s::text::{_sql_type(column, dialect)}[]" for column in columns)
    return f"unnest({', '.join(arrays)})"


def _sql_type(column: Column[Any], dialect: Dialect) -> str:
    # A cast to VARCHAR(n) would cut a text that is too long; the column refuses it.
    return "TEXT" if _is_text(column) else column.type.compile(dialect)


def _is_text(column: Column[Any]) -> bool:
    return isinstance(column.type, String)


def array_literal(values: Iterable[Any]) -> str:
    """Return the literal of an array of PostgreSQL: of texts, or of values as `str` writes them."""
    elements = [
        "NULL"
        if value is None
        # Numbers need no quotes; most values are numbers.
        else str(value)
        if isinstance(value, int | float)
        else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in values
    ]
    return f"{{{','.join(elements)}}}"


def _converter(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    """Return the function that makes a parameter of a value."""
    if isinstance(column.type, JSON):
        return json_text
    if isinstance(column.type, Float):
        return float  # an array has values of one type
    processor = column.type.dialect_impl(dialect).bind_processor(dialect)
    return processor or (lambda value: value)
