"""Idempotency keys: a repeated submission of a token creates one job."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.errors import UnprocessableError
from service.store.database.base import Base, UtcDateTime, utc_now

MAX_KEY_CHARS = 255


class IdempotencyKeyRow(Base):
    """A key that a client chose, the digest of its request, and the job that it created.

    A key belongs to a token: two tokens may choose the same one.
    """

    __tablename__ = "idempotency_keys"

    owner: Mapped[str] = mapped_column(String(64), primary_key=True)  # empty without a token
    key: Mapped[str] = mapped_column(String(MAX_KEY_CHARS), primary_key=True)
    request_sha256: Mapped[str] = mapped_column(String(64))
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def recall(session: Session, owner: str | None, key: str, digests: Collection[str]) -> UUID | None:
    """Return the job that this key of a token created, or None.

    Args:
        owner: The name of the token, if there is one.
        digests: The digests that this version and earlier ones store for the request.

    Raises:
        UnprocessableError: If the key was used for another request.
    """
    row = session.get(IdempotencyKeyRow, (owner or "", key))
    if row is None:
        return None
    if row.request_sha256 not in digests:
        raise UnprocessableError(
            f"idempotency key {key!r} belongs to another request (job {row.job_id}); "
            "choose a new key for a new request"
        )
    return row.job_id


def remember(
    session: Session, owner: str | None, key: str, request_sha256: str, job_id: UUID
) -> None:
    """Store the key of a token with the job that it created."""
    session.add(
        IdempotencyKeyRow(
            owner=owner or "",
            key=key,
            request_sha256=request_sha256,
            job_id=job_id,
            created_at=utc_now(),
        )
    )
