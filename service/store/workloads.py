"""Workloads: what users asked to compute, one row a structure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.base import Base, UtcDateTime, utc_now


class WorkloadRow(Base):
    """A program, known by its structural hash; `script` parses back to it."""

    __tablename__ = "workloads"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    script: Mapped[str] = mapped_column(Text)
    flops: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


@dataclass(frozen=True)
class NewWorkload:
    """A workload as it comes in."""

    key: str
    name: str
    script: str
    flops: int


def ensure(session: Session, workload: NewWorkload) -> None:
    """Keep `workload` unless its structure is already known; the first text stays."""
    if session.get(WorkloadRow, workload.key) is None:
        session.add(
            WorkloadRow(
                key=workload.key,
                name=workload.name,
                script=workload.script,
                flops=workload.flops,
                created_at=utc_now(),
            )
        )
        session.flush()
