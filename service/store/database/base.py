"""What every table module builds on: the declarative base and two column types.

The types mean the same on SQLite and PostgreSQL. Constraint names are fixed by a convention, so
that a migration can name what it drops.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import DateTime, Enum, MetaData
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
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
    """A moment, always aware and in UTC, also on a database that keeps no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn a moment into UTC; a naive one is a bug of ours."""
        assert value is None or value.tzinfo is not None, value
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back the zone that SQLite dropped."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def utc_now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


def enum_column(kind: type[StrEnumT]) -> Enum:
    """Return a column type that keeps the values of `kind` as short text.

    It is text with no check constraint: a new member then needs no migration.
    """
    return Enum(
        kind,
        native_enum=False,
        length=32,
        values_callable=lambda members: [member.value for member in members],
    )
