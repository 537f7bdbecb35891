"""Artifacts: compiled kernels, stored by a key of their sources."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime, utc_now


class ArtifactRow(Base):
    """The bytes of one kernel; `key` digests workload, trace, target and toolchain."""

    __tablename__ = "artifacts"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    workload_key: Mapped[str] = mapped_column(ForeignKey("workloads.key"))
    target: Mapped[str] = mapped_column(String(1000), ForeignKey("targets.name"))
    toolchain: Mapped[str] = mapped_column(String(255))
    content: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def find(session: Session, key: str) -> bytes | None:
    """Return the kernel with `key`, or None."""
    row = session.get(ArtifactRow, key)
    return None if row is None else row.content


def keep(session: Session, row: ArtifactRow) -> None:
    """Store a kernel; an existing one is kept."""
    if session.get(ArtifactRow, row.key) is None:
        row.created_at = utc_now()
        session.add(row)
