"""Searches over ranges as the API shows them: sizes, kernels, times, the dispatcher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.jobs import subjects
from service.reading.queries import ShapesQuery
from service.store import shapes
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.store.shapes import ShapeSizeRow, ShapesRow
from service.wire.models import JobState, Page
from service.wire.shape_reads import (
    ShapeKernelRead,
    ShapesRead,
    ShapesSummary,
    ShapeTimeRead,
    TunedSizeRead,
)


@dataclass
class _ShapesParts:
    """The rows that a search refers to."""

    group: GroupRow
    num_timed: int
    tuned: list[tuple[ShapeSizeRow, JobRow]] = field(default_factory=list)


def list_shapes(session: Session, query: ShapesQuery) -> Page[ShapesSummary]:
    """Return a page of searches over ranges.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    return subjects.list_subjects(session, ShapesRow, "shapes", query, _summaries)


def _summaries(session: Session, rows: Sequence[ShapesRow]) -> list[ShapesSummary]:
    parts = _parts(session, rows)
    return [_summary(row, parts[row.id]) for row in rows]


def find(session: Session, shapes_id: UUID) -> ShapesRead:
    """Return a search over ranges with its result.

    Raises:
        ServiceNotFoundError: If it does not exist.
    """
    return read(session, shapes.get(session, shapes_id, whole=True))


def read(session: Session, row: ShapesRow) -> ShapesRead:
    """Return a search over ranges with its result."""
    parts = _parts(session, [row])[row.id]
    outcome = row.outcome or {}
    return ShapesRead(
        **_summary(row, parts).model_dump(),
        script=row.script,
        tuned=tuple(
            TunedSizeRead(
                sizes=size.sizes,
                job_id=job.id,
                state=job.state,
                num_measured=job.num_measured,
                best_secs=job.best_secs,
            )
            for size, job in parts.tuned
        ),
        kernels=tuple(map(ShapeKernelRead.model_validate, outcome.get("kernels", ()))),
        times=tuple(map(ShapeTimeRead.model_validate, outcome.get("times", ()))),
        dispatcher=outcome.get("dispatcher"),
        module=outcome.get("module"),
        webhook=next((job.webhook for _, job in parts.tuned), None),
    )


def _parts(session: Session, rows: Sequence[ShapesRow]) -> Mapping[UUID, _ShapesParts]:
    ids = [row.id for row in rows]
    groups = subjects.groups_of(session, rows)
    num_timed = defaultdict(int, shapes.count_timings(session, ids))
    parts = {row.id: _ShapesParts(groups[row.group_id], num_timed[row.id]) for row in rows}
    sizes = shapes.sizes(session, ids)
    query = select(JobRow).where(JobRow.id.in_([size.job_id for size in sizes]))
    jobs = {job.id: job for job in session.scalars(query)}
    for size in sizes:
        parts[size.shapes_id].tuned.append((size, jobs[size.job_id]))
    return parts


def _summary(row: ShapesRow, parts: _ShapesParts) -> ShapesSummary:
    common = subjects.summary(row, parts.group, [job for _, job in parts.tuned]).model_dump()
    if row.error and common["state"] is JobState.SUCCEEDED:
        common["state"] = JobState.FAILED
    return ShapesSummary(
        **common,
        ranges={name: (low, high) for name, (low, high) in row.ranges.items()},
        error=row.error,
        num_sizes=len(parts.tuned),
        num_timed=parts.num_timed,
        num_kernels=row.num_kernels,
        loss=row.loss,
    )
