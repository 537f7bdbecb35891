"""The base of every table module: the declarative base and two column types.

The types mean the same on SQLite and PostgreSQL. Constraint names are fixed by a convention, so
that a migration can name what it drops.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import DateTime, Enum, MetaData, text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.types import TypeDecorator

StrEnumT = TypeVar("StrEnumT", bound=StrEnum)


class Base(DeclarativeBase):
    """The base of all rows."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp, always aware and in UTC, also on a database without time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a timestamp to UTC; a naive one is our own bug."""
        assert value is None or value.tzinfo is not None, value
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Restore the time zone that SQLite dropped."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class JsonText(str):
    """JSON that is text already, as the value of a JSON column."""

    __slots__ = ()


def json_text(value: object) -> str:
    """Return the value of a JSON column as text: the `json_serializer` of engines."""
    return value if isinstance(value, JsonText) else json.dumps(value)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def shared_now(session: Session | None) -> datetime:
    """Return the current time in UTC by the clock that all hosts of a database share.

    What one coordinator writes for others, such as the end of a lease, is a time of this clock:
    clocks of hosts differ. Processes with an SQLite file are on one host.
    """
    assert session is not None
    if session.get_bind().dialect.name == "postgresql":
        now: datetime = session.scalars(text("SELECT clock_timestamp()")).one()
        return now.astimezone(UTC)
    return utc_now()


def enum_column(kind: type[StrEnumT]) -> Enum:
    """Return a column type that stores the values of `kind` as short text.

    The text has no check constraint, so that a new member needs no migration.
    """
    return Enum(
        kind,
        native_enum=False,
        length=32,
        values_callable=lambda members: [member.value for member in members],
    )
