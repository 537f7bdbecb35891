"""Whole models: their tasks, and the calls of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column, undefer

from service.store import subjects
from service.store.database.base import Base
from service.store.subjects import SubjectColumns


class ModelRow(SubjectColumns, Base):
    """A model, whose tasks with jobs form a group; `steps` are calls of kernels in a run."""

    __tablename__ = "models"
    __table_args__ = (Index("ix_models_created_at_id", "created_at", "id"),)

    num_steps: Mapped[int] = mapped_column(Integer)
    steps: Mapped[list[dict[str, Any]]] = mapped_column(JSON, deferred=True)


class ModelTaskRow(Base):
    """A program of a model; `job_id` is null for one that is not tuned with the model."""

    __tablename__ = "model_tasks"
    __table_args__ = (Index("ix_model_tasks_workload_key", "workload_key"),)

    model_id: Mapped[UUID] = mapped_column(ForeignKey("models.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    workload_key: Mapped[str] = mapped_column(ForeignKey("workloads.key"))
    operators: Mapped[str] = mapped_column(String(255))
    weight: Mapped[float]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    job_id: Mapped[UUID | None] = mapped_column(ForeignKey("jobs.id"))


def get(session: Session, model_id: UUID, *, with_steps: bool = False) -> ModelRow:
    """Return a model.

    Raises:
        ServiceNotFoundError: If the model does not exist.
    """
    options = [undefer(ModelRow.steps)] if with_steps else []
    return subjects.get(session, ModelRow, "model", model_id, *options)


def tasks(session: Session, model_ids: Sequence[UUID]) -> list[ModelTaskRow]:
    """Return the tasks of models, by number."""
    query = select(ModelTaskRow).where(ModelTaskRow.model_id.in_(model_ids))
    return list(session.scalars(query.order_by(ModelTaskRow.number)))
