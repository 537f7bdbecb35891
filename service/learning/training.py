"""Train a cost model for one kind of target on all measurements of the store.

Measurements for other kinds of target are included with a lower weight
(`tuner.cost_model.weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from compiler.driver import toolchain
from compiler.schedule.error import TraceError
from compiler.script.error import ScriptError
from compiler.target.error import TargetError
from compiler.target.target import COLD_SUFFIX, Target, kind_of_label
from service.store import cost_models
from service.store.cost_models import CostModelRow, NewCostModel
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs.jobs import JobRow
from service.store.targets import TargetRow, has_timing_label
from service.store.tasks import load_task, parse_candidate
from service.store.trials.trials import TrialRow
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.quality import pairwise_accuracy
from tuner.cost_model.training import Measured, MeasuredTask, Trained, train
from tuner.cost_model.weights import weight
from tuner.loop.search_result import SearchResult
from tuner.replay.packaged import packaged_samples, packaged_sets
from tuner.task import Task

MAX_TRIALS = 20_000
"""Number of newest measurements to train on: reading each takes up to a millisecond."""


@dataclass(frozen=True)
class _Key:
    """The key of a task in the store."""

    workload_key: str
    target: str


def train_on_store(
    session: Session,
    label: str,
    *,
    extra_samples: Sequence[Samples] = (),
    on_progress: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Train a model for a kind of target, such as `cpu/znver3`, on the measurements of all kinds.

    Args:
        extra_samples: Additional training data; see `packaged_for`.

    Raises:
        CostModelError: If the store has no training data.
    """
    tasks, num_unread = _tasks(session, label)
    kind = kind_of_label(label)
    trained = train(
        tasks, extra_samples=extra_samples, kind=kind, label=label, on_progress=on_progress
    )
    return replace(trained, num_skipped=trained.num_skipped + num_unread)


def packaged_for(label: str) -> list[Samples]:
    """Return the measurements that come with the program, weighted for a kind of target."""
    kind = kind_of_label(label)
    now, current_toolchain = utc_now(), toolchain(kind)
    weighted = []
    for recorded, samples in zip(packaged_sets(), packaged_samples(), strict=True):
        if Target(recorded.target).kind != kind:
            continue
        counts = weight(
            now - datetime.fromisoformat(recorded.provenance["at"]),
            is_same_target=Target(recorded.target).timing_label == label,
            is_same_toolchain=recorded.provenance["toolchain"] == current_toolchain,
        )
        weighted.append(replace(samples, weights=np.full(len(samples.run_secs), counts)))
    return weighted


def keep_of_job(session: Session, job: JobRow, result: SearchResult) -> None:
    """Store the cost model of a job, and its quality on held-out candidates."""
    if result.cost_model is None:
        return
    model = NewCostModel(
        label=Target(job.target).timing_label,
        job_id=job.id,
        blob=result.cost_model,
        trained_on=len(result.trials),
        quality={"pairwise_accuracy": pairwise_accuracy(result.trials)},
    )
    cost_models.add(session, model)


def keep(database: Database, label: str, trained: Trained) -> CostModelRow:
    """Store a model of the whole store as the next version of its kind of target."""
    model = NewCostModel(
        label=label,
        blob=trained.model,
        trained_on=trained.num_samples,
        num_tasks=trained.num_tasks,
        fingerprint=trained.fingerprint,
        quality=quality_of(trained),
    )
    with database.write() as session:
        return cost_models.add(session, model)


def quality_of(trained: Trained) -> dict[str, Any]:
    """Return the quality on held-out tasks: the mean, the number of tasks, and each value.

    `by_split` has the means of models without a task, an operator, or the kind of target.
    """
    judged = {key: q for key, q in trained.by_task.items() if q is not None}
    mean = trained.quality
    return {
        **({} if mean is None else mean.to_json()),
        "held_out_tasks": len(judged),
        "skipped": trained.num_skipped,
        "by_task": {key: q.to_json() for key, q in judged.items()},
        "by_split": {name: q.to_json() for name, q in trained.by_split.items()},
    }


def trained_at(session: Session, label: str) -> datetime | None:
    """Return when the newest model for a kind of target was trained on the store.

    None if there is no such model, or a base model is newer.
    """
    newest = (
        select(CostModelRow.created_at, CostModelRow.quality)
        .where(CostModelRow.label == label, CostModelRow.job_id.is_(None))
        .order_by(CostModelRow.version.desc())
        .limit(1)
    )
    row = session.execute(newest).one_or_none()
    return None if row is None or row.quality.get("is_base") else row.created_at


def num_new_trials(session: Session, label: str) -> int:
    """Return the number of trials of a kind of target that are newer than its newest model.

    A model with other features does not count.
    """
    since = select(func.max(CostModelRow.created_at)).where(
        CostModelRow.label == label,
        CostModelRow.job_id.is_(None),
        CostModelRow.feature_version == cost_models.feature_version(label),
    )
    newest = session.scalar(since)
    query = (
        select(func.count())
        .select_from(TrialRow)
        .join(JobRow, JobRow.id == TrialRow.job_id)
        .join(TargetRow, TargetRow.name == JobRow.target)
        .where(has_timing_label(label))
    )
    if newest is not None:
        query = query.where(TrialRow.created_at > newest)
    return session.scalar(query) or 0


def _tasks(session: Session, label: str) -> tuple[list[MeasuredTask], int]:
    """Return the newest trials of the store by task, and the number that this version cannot read.

    The order depends only on the data.
    """
    rows = session.execute(
        select(TrialRow, JobRow.workload_key, JobRow.target)
        .join(JobRow, JobRow.id == TrialRow.job_id)
        .order_by(TrialRow.created_at.desc(), TrialRow.job_id, TrialRow.number)
        .limit(MAX_TRIALS)
    ).all()
    ordered = sorted(rows, key=lambda row: (row[1], row[2]))
    measured_tasks = []
    num_unread = 0
    for key, group in groupby(ordered, key=lambda row: _Key(row[1], row[2])):
        task = _task(session, key)
        if task is not None and not _is_of_use(task.target, label):
            continue
        trials = _newest([row[0] for row in group])
        measured = [] if task is None else _measured(trials, task.target, label)
        num_unread += len(trials) - len(measured)
        if task is not None:
            measured_tasks.append(MeasuredTask(task, measured))
    return measured_tasks, num_unread


def _task(session: Session, key: _Key) -> Task | None:
    """Return a task; None if this version cannot read its program or its target."""
    try:
        return load_task(session, key.workload_key, key.target)
    except (ScriptError, TargetError):
        return None


def _is_of_use(target: Target, label: str) -> bool:
    """Return whether the times of a target train the model of a label.

    Candidates of another kind have other features. Cold times train no warm model; warm times train
    a cold one, with the weight of another target.
    """
    is_for_cold = label.endswith(COLD_SUFFIX)
    return target.kind == kind_of_label(label) and (is_for_cold or not target.is_cold)


def _newest(trials: list[TrialRow]) -> list[TrialRow]:
    """Return the first trial of each candidate."""
    return list({trial.candidate_key: trial for trial in reversed(trials)}.values())[::-1]


def _measured(trials: list[TrialRow], target: Target, label: str) -> list[Measured]:
    """Return the trials whose traces can be read, with their weights."""
    now, current_toolchain = utc_now(), toolchain(target.kind)
    measurements = []
    for trial in trials:
        try:
            candidate = parse_candidate(trial.sketch, trial.trace)
        except TraceError:
            continue  # from a version with other primitives
        counts = weight(
            now - trial.created_at,
            is_same_target=target.timing_label == label,
            is_same_toolchain=trial.toolchain == current_toolchain,
        )
        secs = trial.best_secs if trial.best_secs is not None else float("inf")
        measurements.append(Measured(candidate, secs, counts))
    return measurements
