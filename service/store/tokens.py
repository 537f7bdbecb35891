"""Access tokens with their scopes and quotas; only the digest of a token is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import JSON, Index, Integer, String, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.errors import ServiceConflictError, ServiceNotFoundError
from service.common.quota import NO_LIMITS, Quota
from service.store.database.base import Base, UtcDateTime, utc_now
from service.wire.server_models import Scope, TokenRead

BOOTSTRAP = "bootstrap"
"""The name of the token that a service gets at its start; it is in no database."""
_PREFIX = "lw_"
"""The prefix that identifies a string as a token, for example in a leaked file."""
_USE_IS_NOTED_AFTER = timedelta(minutes=15)
"""Minimum interval at which the last use of a token is stored: a write for each request would cost
more than the request. Chosen.
"""
_IS_LIVE = text("revoked_at IS NULL")


class TokenRow(Base):
    """A token. Names of valid tokens are unique; a revoked one may be reused.

    `last_used_at` is coarse: a use within a quarter of an hour of the last is not stored.
    """

    __tablename__ = "tokens"
    __table_args__ = (
        Index(
            "ix_tokens_live_name",
            "name",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    max_jobs: Mapped[int | None] = mapped_column(Integer)
    max_trials: Mapped[int | None] = mapped_column(Integer)
    max_priority: Mapped[int | None] = mapped_column(Integer)

    @property
    def quota(self) -> Quota:
        """The quota of the token."""
        return Quota(self.max_jobs, self.max_trials, self.max_priority)


def digest(token: str) -> str:
    """Return the digest of a token, which is random and long, so that it needs no salt."""
    return hashlib.sha256(token.encode()).hexdigest()


def create(
    session: Session, name: str, scopes: Collection[Scope], quota: Quota = NO_LIMITS
) -> tuple[TokenRow, str]:
    """Create a token.

    Returns:
        Its row, and the token itself, which is not stored.

    Raises:
        ServiceConflictError: If a token of this name is in use, or the name is reserved.
    """
    if name == BOOTSTRAP:
        raise ServiceConflictError(
            f"{BOOTSTRAP!r} is reserved for the token of `serve --token`: choose another name"
        )
    if find(session, name) is not None:
        raise ServiceConflictError(
            f"token {name!r} exists: revoke it first, or choose another name"
        )
    token = _PREFIX + secrets.token_urlsafe(32)
    row = TokenRow(
        id=uuid4(),
        name=name,
        sha256=digest(token),
        scopes=sorted({scope.value for scope in scopes}),
        created_at=utc_now(),
        max_jobs=quota.max_jobs,
        max_trials=quota.max_trials,
        max_priority=quota.max_priority,
    )
    session.add(row)
    session.flush()
    return row, token


def find(session: Session, name: str) -> TokenRow | None:
    """Return the valid token of a name, or None."""
    return session.scalar(
        select(TokenRow).where(TokenRow.name == name, TokenRow.revoked_at.is_(None))
    )


def recognize(session: Session, token: str) -> TokenRow | None:
    """Return the row of a valid token, or None."""
    return session.scalar(
        select(TokenRow).where(TokenRow.sha256 == digest(token), TokenRow.revoked_at.is_(None))
    )


def any_was_made(session: Session) -> bool:
    """Return whether a token was ever created, even if it was revoked since."""
    return session.scalar(select(TokenRow.id).limit(1)) is not None


def is_use_to_be_noted(row: TokenRow) -> bool:
    """Return whether the last stored use is long enough ago."""
    return row.last_used_at is None or utc_now() - row.last_used_at > _USE_IS_NOTED_AFTER


def note_use(session: Session, token_id: UUID) -> None:
    """Store the current time as the last use of a token."""
    session.get_one(TokenRow, token_id).last_used_at = utc_now()


def revoke(session: Session, token_id: UUID) -> None:
    """Revoke a token; a revoked one does not change.

    Raises:
        ServiceNotFoundError: If the token does not exist.
    """
    row = session.get(TokenRow, token_id)
    if row is None:
        raise ServiceNotFoundError(f"no token {token_id}")
    row.revoked_at = row.revoked_at or utc_now()


def newest_first(session: Session) -> list[TokenRead]:
    """Return all tokens, without their secrets."""
    rows = session.scalars(select(TokenRow).order_by(TokenRow.created_at.desc(), TokenRow.id))
    return [read(row) for row in rows]


def read(row: TokenRow) -> TokenRead:
    """Return a token as the API shows it, without its secret."""
    return TokenRead.model_validate(row, from_attributes=True)
