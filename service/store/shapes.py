"""Searches over ranges of sizes: their programs, tuned sizes, timings of kernels and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Index, Integer, String, Text, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column, undefer

from service.store import subjects
from service.store.database.base import Base, UtcDateTime
from service.store.subjects import SubjectColumns


class ShapesRow(SubjectColumns, Base):
    """A search over ranges, whose tuned sizes are the jobs of a group.

    `script` is the symbolic program with its ranges. The kernels and the dispatcher are in
    `outcome`, once they are chosen: after the last job of the group. `error` says why there are
    none.
    """

    __tablename__ = "shapes"
    __table_args__ = (Index("ix_shapes_created_at_id", "created_at", "id"),)

    workload_key: Mapped[str] = mapped_column(String(64))
    script: Mapped[str] = mapped_column(Text, deferred=True)
    ranges: Mapped[dict[str, list[int]]] = mapped_column(JSON)
    outcome: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    num_kernels: Mapped[int | None] = mapped_column(Integer)
    loss: Mapped[float | None]
    error: Mapped[str | None] = mapped_column(Text)


class ShapeSizeRow(Base):
    """A size that a job tunes alone."""

    __tablename__ = "shape_sizes"

    shapes_id: Mapped[UUID] = mapped_column(ForeignKey("shapes.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    sizes: Mapped[dict[str, int]] = mapped_column(JSON)
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"))


class ShapeTimingRow(Base):
    """The measurement of a kernel of the symbolic program at a size.

    `task_key` is the structural hash of the program at this size.
    """

    __tablename__ = "shape_timings"

    shapes_id: Mapped[UUID] = mapped_column(ForeignKey("shapes.id"), primary_key=True)
    task_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    candidate_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    sizes: Mapped[dict[str, int] | None] = mapped_column(JSON(none_as_null=True))
    sketch: Mapped[str] = mapped_column(String(255))
    trace: Mapped[dict[str, Any]] = mapped_column(JSON)
    measurement: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def get(session: Session, shapes_id: UUID, *, whole: bool = False) -> ShapesRow:
    """Return a search, with its program and its outcome if `whole` is set.

    Raises:
        ServiceNotFoundError: If it does not exist.
    """
    options = [undefer(ShapesRow.script), undefer(ShapesRow.outcome)] if whole else []
    return subjects.get(session, ShapesRow, "search over ranges", shapes_id, *options)


def of_group(session: Session, group_id: UUID) -> ShapesRow | None:
    """Return the search whose sizes are the jobs of a group; None if the group is of another kind.

    Its program is read with it.
    """
    return subjects.of_group(session, ShapesRow, group_id, undefer(ShapesRow.script))


def sizes(session: Session, ids: Sequence[UUID]) -> list[ShapeSizeRow]:
    """Return the tuned sizes of searches, by number."""
    query = select(ShapeSizeRow).where(ShapeSizeRow.shapes_id.in_(ids))
    return list(session.scalars(query.order_by(ShapeSizeRow.number)))


def timings_of(session: Session, shapes_id: UUID, task_key: str) -> list[ShapeTimingRow]:
    """Return the timings of a search at one size."""
    return list(
        session.scalars(
            select(ShapeTimingRow).where(
                ShapeTimingRow.shapes_id == shapes_id, ShapeTimingRow.task_key == task_key
            )
        )
    )


def count_timings(session: Session, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the number of timings of searches; those without any are left out."""
    query = select(ShapeTimingRow.shapes_id, func.count()).where(ShapeTimingRow.shapes_id.in_(ids))
    rows = session.execute(query.group_by(ShapeTimingRow.shapes_id)).all()
    return {row[0]: row[1] for row in rows}
