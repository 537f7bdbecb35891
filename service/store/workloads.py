"""Workloads: the programs that users submitted, one row for each structure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, String, Text
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.common.new_workload import NewWorkload
from service.store.database.base import Base, UtcDateTime, utc_now
from tuner.transfer.shape import shape_from_json


class WorkloadRow(Base):
    """A program, identified by its structural hash; `script` parses back to it.

    Rows with one `operator_key` are shapes of one operator (`tuner.transfer`); it is null if the
    text of an older version no longer parses.
    """

    __tablename__ = "workloads"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    script: Mapped[str] = mapped_column(Text)
    flops: Mapped[int] = mapped_column(BigInteger)
    dtype: Mapped[str | None] = mapped_column(String(16))  # of all parameters, or else of products
    operator_key: Mapped[str | None] = mapped_column(String(64), index=True)
    shape: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def ensure(session: Session, workload: NewWorkload) -> None:
    """Store `workload` unless its structure exists; the first text is kept."""
    if session.get(WorkloadRow, workload.key) is None:
        session.add(
            WorkloadRow(
                key=workload.key,
                name=workload.name,
                script=workload.script,
                flops=workload.flops,
                dtype=workload.dtype,
                operator_key=workload.operator_key,
                shape=None if workload.shape is None else dict(workload.shape),
                created_at=utc_now(),
            )
        )
        session.flush()


def find(session: Session, key: str) -> NewWorkload | None:
    """Return the workload of a key, or None."""
    row = session.get(WorkloadRow, key)
    if row is None:
        return None
    return NewWorkload(
        key=row.key,
        name=row.name,
        script=row.script,
        flops=row.flops,
        operator_key=row.operator_key,
        shape=row.shape,
        dtype=row.dtype,
    )


def in_words(shape: Mapping[str, Any] | None) -> str | None:
    """Return the extents of the largest block of a stored shape as text, or None."""
    return None if shape is None else shape_from_json("", shape).in_words()
