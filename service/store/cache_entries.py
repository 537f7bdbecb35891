"""The shared cache of other tools: bytes by a key that the tool chose, with a quota.

An entry never changes. If the entries exceed the quota, the least recently used are removed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Index, Integer, LargeBinary, String, delete, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.errors import ServeError, ServiceConflictError, ServiceNotFoundError
from service.store.database.base import Base, UtcDateTime, utc_now

QUOTA = "LOOPWRIGHT_CACHE_QUOTA_BYTES"
"""The environment variable with the limit of all entries together; 0 for no cache."""
_DEFAULT_QUOTA_BYTES = 256 << 20
"""As much as the cache of a client takes on its disk. Chosen."""
_KEPT_SHARE = 0.9
"""The share of the quota that remains after a clean-up, so that it is rare. Chosen."""
_USE_IS_NOTED_AFTER = timedelta(minutes=15)
"""Minimum interval at which the last use is stored, as of tokens: a write for each read would cost
more than the read. Chosen.
"""
MAX_KEY_CHARS = 128


class CacheEntryRow(Base):
    """An entry; `used_at` is coarse."""

    __tablename__ = "cache_entries"
    __table_args__ = (Index("ix_cache_entries_used_at", "used_at", "size_bytes"),)

    key: Mapped[str] = mapped_column(String(MAX_KEY_CHARS), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(Integer)
    owner: Mapped[str] = mapped_column(String(64))  # the name of the token that stored it
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime] = mapped_column(UtcDateTime)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)

    @property
    def is_use_to_be_noted(self) -> bool:
        """Return whether its last use was stored long ago."""
        return utc_now() - self.used_at > _USE_IS_NOTED_AFTER


def quota_bytes(environ: Mapping[str, str] = os.environ) -> int:
    """Return the limit of all entries together.

    Raises:
        ServeError: If `$LOOPWRIGHT_CACHE_QUOTA_BYTES` is no number of bytes.
    """
    text = environ.get(QUOTA, str(_DEFAULT_QUOTA_BYTES))
    if not text.isdecimal():
        raise ServeError(f"cannot read {QUOTA}={text!r}: expected a number of bytes, or 0")
    return int(text)


def get(session: Session, key: str) -> CacheEntryRow:
    """Return an entry.

    Raises:
        ServiceNotFoundError: If there is none, or no longer.
    """
    row = session.get(CacheEntryRow, key)
    if row is None:
        raise ServiceNotFoundError(f"the cache has no entry {key!r}")
    return row


def put(session: Session, key: str, content: bytes, owner: str, quota: int) -> bool:
    """Store an entry, and remove the least recently used ones that exceed the quota.

    Args:
        content: At most `quota` bytes.
        owner: The name of the token that stores it.

    Returns:
        Whether it is new.

    Raises:
        ServiceConflictError: If the key has another content: an entry never changes.
    """
    assert len(content) <= quota, (len(content), quota)
    sha256 = hashlib.sha256(content).hexdigest()
    row = session.get(CacheEntryRow, key)
    if row is not None and row.sha256 != sha256:
        raise ServiceConflictError(
            f"the entry {key!r} has another content, with the SHA-256 {row.sha256}, stored by "
            f"token {row.owner!r}: an entry never changes, so use another key"
        )
    if row is not None:
        return False
    _make_room(session, quota, len(content))
    now = utc_now()
    session.add(
        CacheEntryRow(
            key=key,
            sha256=sha256,
            size_bytes=len(content),
            owner=owner,
            created_at=now,
            used_at=now,
            content=content,
        )
    )
    return True


def note_use(session: Session, key: str) -> None:
    """Store that an entry is used now."""
    row = session.get(CacheEntryRow, key)
    if row is not None:
        row.used_at = utc_now()


def remove(session: Session, key: str) -> None:
    """Remove an entry.

    Raises:
        ServiceNotFoundError: If there is none.
    """
    session.delete(get(session, key))


def _make_room(session: Session, quota: int, size_bytes: int) -> None:
    total = session.scalar(select(func.coalesce(func.sum(CacheEntryRow.size_bytes), 0))) or 0
    if total + size_bytes <= quota:
        return
    limit = quota * _KEPT_SHARE - size_bytes
    removed = []
    query = select(CacheEntryRow.key, CacheEntryRow.size_bytes)
    for key, size in session.execute(query.order_by(CacheEntryRow.used_at, CacheEntryRow.key)):
        if total <= limit:
            break
        removed.append(key)
        total -= size
    for start in range(0, len(removed), 500):  # a statement has a limited number of parameters
        keys = removed[start : start + 500]
        session.execute(delete(CacheEntryRow).where(CacheEntryRow.key.in_(keys)))
