"""Targets: the machines that workloads were tuned for."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.base import Base, UtcDateTime, utc_now


class TargetRow(Base):
    """A target by its canonical text; `label` is what workers offer, such as `cpu/znver3`."""

    __tablename__ = "targets"

    name: Mapped[str] = mapped_column(String(1000), primary_key=True)
    label: Mapped[str] = mapped_column(String(255), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def ensure(session: Session, name: str, label: str) -> None:
    """Keep the target unless it is already known."""
    if session.get(TargetRow, name) is None:
        session.add(TargetRow(name=name, label=label, created_at=utc_now()))
        session.flush()
