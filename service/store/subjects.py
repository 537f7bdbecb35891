"""Subjects of groups: what is tuned as the jobs of a group, such as a model."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ForeignKey, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.errors import ServiceNotFoundError
from service.store.database.base import UtcDateTime


class SubjectColumns:
    """The columns of each subject; its group counts the trials of its jobs together."""

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    target: Mapped[str] = mapped_column(ForeignKey("targets.name"))
    owner: Mapped[str | None] = mapped_column(String(64))  # the name of a token
    group_id: Mapped[UUID] = mapped_column(ForeignKey("groups.id"), unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


RowT = TypeVar("RowT", bound=SubjectColumns)


def get(session: Session, kind: type[RowT], words: str, subject_id: UUID, *options: Any) -> RowT:
    """Return a subject.

    Args:
        kind: Its class.
        words: What it is called in an error, such as `model`.
        subject_id: Its id.
        options: What to read with it.

    Raises:
        ServiceNotFoundError: If it does not exist.
    """
    row = session.get(kind, subject_id, options=options)
    if row is None:
        raise ServiceNotFoundError(f"no {words} {subject_id}")
    return row


def of_group(session: Session, kind: type[RowT], group_id: UUID, *options: Any) -> RowT | None:
    """Return the subject whose jobs form a group; None if that is of another kind."""
    query = select(kind).where(kind.group_id == group_id)
    return session.scalars(query.options(*options)).one_or_none()
