"""The error of a damaged or deleted database."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from service.common.errors import ServiceError


class DatabaseLostError(ServiceError, SQLAlchemyError):
    """The file of the database is damaged or was moved; also an error of the database."""
