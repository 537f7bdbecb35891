"""The error of a database that is damaged or gone."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from service.common.errors import ServiceError


class DatabaseLostError(ServiceError, SQLAlchemyError):
    """The database's file is damaged, or not at its place: an error of the database, too."""
