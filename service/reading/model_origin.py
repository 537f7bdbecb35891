"""What ordered the candidates of a job before its own measurements did."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.store import warm_starts
from service.store.cost_models import CostModelRow
from service.store.jobs.jobs import JobRow
from service.wire.readings import ModelOrigin
from tuner.search.make import uses_model


def model_origin(session: Session, job: JobRow) -> ModelOrigin:
    """Return the origin of the cost model with which a job starts."""
    if not uses_model(job.strategy):
        return ModelOrigin.NOTHING
    start = warm_starts.find(session, job.id)
    if start is None or start.cost_model_id is None:
        return ModelOrigin.ESTIMATE
    query = select(CostModelRow.quality).where(CostModelRow.id == start.cost_model_id)
    is_base = bool(session.scalars(query).one().get("is_base"))
    return ModelOrigin.RECORDED if is_base else ModelOrigin.MEASUREMENTS
