"""The warm start of a job: the model of its kind of target, and schedules of related tasks."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy.orm import Session

from compiler.target.target import kind_of_label
from compiler.user_cache import default_directory
from service.common.owner import Owner
from service.learning.neighbours import Neighbour, nearest
from service.store import cost_models, warm_starts
from service.store.cost_models import CostModelRow, NewCostModel
from service.store.database.database import Database
from service.store.jobs import leases
from service.store.jobs.jobs import JobRow
from service.store.tasks import parse_candidate
from service.store.warm_starts import WarmCandidateRow, WarmStartRow
from tuner.cost_model import stored_format
from tuner.cost_model.cost_model import CostModelError
from tuner.replay import base_model
from tuner.replay.base_model import BaseModel
from tuner.search.make import uses_model
from tuner.task import Task
from tuner.transfer.seed import Refitted, refitted
from tuner.transfer.shape import shape_of
from tuner.warm_start import COLD, WarmStart


def warm_start_of_job(
    database: Database,
    owner: Owner,
    job: JobRow,
    task: Task,
    rules: Collection[str] | None = None,
) -> WarmStart:
    """Return the warm start of a job; a resumed job gets its first one again.

    Raises:
        LeaseLostError: If the job is new, and `owner` no longer holds its lease.
    """
    with database.read() as session:
        stored = warm_starts.find(session, job.id)
        if stored is not None:
            return _from_row(session, stored)
        if job.num_measured:
            return COLD  # started by a version without warm starts
        near = nearest(session, shape_of(task.func), task.target)
        model = cost_models.newest_usable(session, task.target.timing_label)
    base = None
    if model is None and uses_model(job.strategy) and task.target.kind == base_model.KIND:
        base = base_model.base_model(default_directory())
    fits = refitted(task, [n.relative for n in near], rules=rules)
    rows = [_row(job.id, position, fit, near[fit.relative]) for position, fit in enumerate(fits)]
    with database.write() as session:
        leases.owned(session, job.id, str(owner))
        if base is not None:
            model = _ensure_base(session, base, task.target.timing_label)
        model_id = None if model is None else model.id
        return _from_row(
            session,
            warm_starts.keep(session, job.id, cost_model_id=model_id, candidates=rows),
        )


def _ensure_base(session: Session, base: BaseModel, label: str) -> CostModelRow:
    """Return the model of a kind of target; store the base model if it has none."""
    existing = cost_models.newest_usable(session, label)
    if existing is not None:
        return existing
    model = NewCostModel(
        label=label,
        blob=base.model,
        trained_on=base.num_samples,
        num_tasks=base.num_tasks,
        fingerprint=base.fingerprint,
        quality={"is_base": True},
    )
    return cost_models.add(session, model)


def _row(job_id: UUID, position: int, fit: Refitted, near: Neighbour) -> WarmCandidateRow:
    trial = near.trials[fit.rank]
    return WarmCandidateRow(
        job_id=job_id,
        position=position,
        candidate_key=fit.candidate.key,
        sketch=fit.candidate.sketch,
        trace=fit.candidate.trace.to_json(),
        distance=near.distance,
        source_job_id=trial.job_id,
        source_number=trial.number,
        source_rank=fit.rank,
    )


def _from_row(session: Session, warm_start_row: WarmStartRow) -> WarmStart:
    rows = warm_starts.candidates(session, warm_start_row.job_id)
    candidates = tuple(parse_candidate(row.sketch, row.trace) for row in rows)
    return WarmStart(_model(session, warm_start_row.cost_model_id), candidates)


def _model(session: Session, model_id: int | None) -> bytes | None:
    """Return a usable model, or None; a model of another version is not usable."""
    if model_id is None:
        return None
    model = session.get_one(CostModelRow, model_id)
    try:
        stored_format.check(model.blob, kind_of_label(model.label))
    except CostModelError:
        return None
    return model.blob
