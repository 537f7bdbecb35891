"""Tokens: who may ask for what. Of a token itself only a digest is kept."""

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
"""The name of the token that a service was given when it started; it is in no database."""
_PREFIX = "lw_"
"""So that a token is known for one wherever it is found."""
_USE_IS_NOTED_AFTER = timedelta(minutes=15)
"""The last use of a token is stored at most so often: a write for each request would cost more than
the request. Chosen.
"""
_IS_LIVE = text("revoked_at IS NULL")


class TokenRow(Base):
    """A token. Its name is of one at a time: a revoked one may be followed by another.

    `last_used_at` is coarse: a use within a quarter of an hour of the last is not noted.
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
        """What the token may have queued at once."""
        return Quota(self.max_jobs, self.max_trials, self.max_priority)


def digest(token: str) -> str:
    """Return what is kept of a token: it is random and long, so that no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def create(
    session: Session, name: str, scopes: Collection[Scope], quota: Quota = NO_LIMITS
) -> tuple[TokenRow, str]:
    """Make a token.

    Returns:
        Its row, and the token, which is not known any more after this.

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
    """Return the token in use of a name."""
    return session.scalar(
        select(TokenRow).where(TokenRow.name == name, TokenRow.revoked_at.is_(None))
    )


def recognize(session: Session, token: str) -> TokenRow | None:
    """Return the row of a token in use."""
    return session.scalar(
        select(TokenRow).where(TokenRow.sha256 == digest(token), TokenRow.revoked_at.is_(None))
    )


def any_was_made(session: Session) -> bool:
    """Tell whether there was ever a token, also one that was revoked since."""
    return session.scalar(select(TokenRow.id).limit(1)) is not None


def is_use_to_be_noted(row: TokenRow) -> bool:
    """Tell whether the last noted use is long ago."""
    return row.last_used_at is None or utc_now() - row.last_used_at > _USE_IS_NOTED_AFTER


def note_use(session: Session, token_id: UUID) -> None:
    """Note that a token is used now."""
    session.get_one(TokenRow, token_id).last_used_at = utc_now()


def revoke(session: Session, token_id: UUID) -> None:
    """End a token; one that ended stays as it is.

    Raises:
        ServiceNotFoundError: If there is no such token.
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
