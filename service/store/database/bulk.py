"""Insert or update many rows by one statement.

On PostgreSQL each column is one array: a statement for each row would cost the client and the
server several times as much. An array is sent as its literal, made here: psycopg escapes each
element by regular expressions, which took a third of a busy coordinator's processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import JSON, Column, Float, String, Table, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session

from service.store.database.base import json_text

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows by the names of their columns; all have the same ones."""


def insert_rows(session: Session, table: Table, rows: Rows) -> None:
    """Insert rows into a table."""
    connection = session.connection()
    if connection.dialect.name != "postgresql":
        connection.execute(table.insert(), list(rows))
        return
    columns = [table.c[name] for name in rows[0]]
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({_names(columns)})"
        f" SELECT * FROM {_arrays(columns, connection.dialect)}",
        _values(columns, rows, connection.dialect),
    )


def update_rows(session: Session, table: Table, key: str, rows: Rows) -> None:
    """Set the columns of rows that exist.

    Args:
        key: The name of the column that identifies a row.
    """
    connection = session.connection()
    columns = [table.c[name] for name in rows[0]]
    changed = [column for column in columns if column.name != key]
    if connection.dialect.name != "postgresql":
        statement = table.update().where(table.c[key] == bindparam("key_"))
        values: dict[str, Any] = {column.name: bindparam(column.name) for column in changed}
        connection.execute(
            statement.values(values), [{"key_": row[key], **_without(row, key)} for row in rows]
        )
        return
    settings = ", ".join(f"{column.name} = new.{column.name}" for column in changed)
    connection.exec_driver_sql(
        f"UPDATE {table.name} SET {settings}"
        f" FROM {_arrays(columns, connection.dialect)} AS new ({_names(columns)})"
        f" WHERE {table.name}.{key} = new.{key}",
        _values(columns, rows, connection.dialect),
    )


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


def _values(columns: Sequence[Column[Any]], rows: Rows, dialect: Dialect) -> dict[str, str]:
    values: dict[str, str] = {}
    for column in columns:
        convert = _converter(column, dialect)
        values[column.name] = array_literal(
            None if (value := row[column.name]) is None else convert(value) for row in rows
        )
    return values


def array_literal(values: Iterable[Any]) -> str:
    """Return the literal of an array of PostgreSQL: of texts, or of values as `str` writes them."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _converter(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    """Return the function that makes a parameter of a value."""
    if isinstance(column.type, JSON):
        return json_text
    if isinstance(column.type, Float):
        return float  # an array has values of one type
    processor = column.type.dialect_impl(dialect).bind_processor(dialect)
    return processor or (lambda value: value)
