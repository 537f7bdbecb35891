"""Sketches: the labels of the decisions of a job's trials, stored once for each sketch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow
from tuner.space.tables.labels import stored_labels

SketchKey: TypeAlias = tuple[UUID, str]
"""A job and the name of one of its sketches."""


class SketchRow(Base):
    """A sketch of a job; `labels` name the numbers in the `decisions` of its trials."""

    __tablename__ = "sketches"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    labels: Mapped[list[str]] = mapped_column(JSON)


def ensure(session: Session, job_id: UUID, workload_key: str, names: Iterable[str]) -> None:
    """Label those of a job's sketches that have no labels yet; each has a trial in the store."""
    labelled = session.scalars(select(SketchRow.name).where(SketchRow.job_id == job_id))
    for name in sorted(set(names).difference(labelled)):
        of_sketch = (TrialRow.job_id == job_id) & (TrialRow.sketch == name)
        first = select(TrialRow.trace).where(of_sketch).order_by(TrialRow.number).limit(1)
        script = session.get_one(WorkloadRow, workload_key).script
        labels = stored_labels(session.scalars(first).one(), script)
        session.add(SketchRow(job_id=job_id, name=name, labels=labels))
    session.flush()


def labels(session: Session, job_id: UUID, name: str) -> Sequence[str]:
    """Return the labels of a sketch that has trials."""
    return session.get_one(SketchRow, (job_id, name)).labels
