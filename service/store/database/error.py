"""The error of a damaged or deleted database, and errors of databases in logs."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.common.errors import ServiceError


class DatabaseLostError(ServiceError, SQLAlchemyError):
    """The file of the database is damaged or was moved; also an error of the database."""


class DatabaseDamagedError(DatabaseLostError):
    """A row that no transaction can have written: the file of the database is damaged."""


def in_a_line(error: Exception) -> str:
    """Return the cause of an error in one line, without its statement."""
    cause = getattr(error, "orig", None) or error
    return " ".join(str(cause).split())


def log_error(log: Any, event: str, error: Exception, **more: Any) -> None:
    """Log an error: a database that does not respond as one line, anything else with its trace."""
    if isinstance(error, (InterfaceError, OperationalError, PoolTimeoutError)):
        log.warning(event, reason=in_a_line(error), **more)
    else:
        log.error(event, exc_info=error, **more)
