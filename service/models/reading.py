"""Models as the API shows them: tasks, projected latency and its history, best schedules."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from service.jobs import subjects
from service.reading.queries import ModelsQuery
from service.store import models, targets
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.store.models import ModelRow, ModelTaskRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.targets import TargetRow
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow, in_words
from service.wire.model_reads import (
    LatencyPoint,
    ModelPackage,
    ModelRead,
    ModelSchedule,
    ModelStep,
    ModelSummary,
    ModelTaskRead,
)
from service.wire.models import Page
from service.wire.times import kind_of
from tuner.loop.task_scheduler import SLACK, expected_gain

MAX_KEYS = 5000
"""Trials that one statement asks for; it has a limited number of parameters. Chosen."""
MAX_POINTS = 500
"""Points of a history: more than a plot shows apart. Chosen."""


@dataclass(frozen=True)
class _Task:
    """A task of a model, with the rows that it refers to."""

    row: ModelTaskRow
    workload: WorkloadRow
    job: JobRow | None
    best: BestScheduleRow | None

    @property
    def secs(self) -> float | None:
        return None if self.best is None else self.best.run_secs

    @property
    def counts(self) -> bool:
        """Return whether the projected latency waits for its time, or has it."""
        return self.job is not None or self.best is not None


def list_models(session: Session, query: ModelsQuery) -> Page[ModelSummary]:
    """Return a page of models.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    return subjects.list_subjects(session, ModelRow, "models", query, _summaries)


def _summaries(session: Session, rows: Sequence[ModelRow]) -> list[ModelSummary]:
    tasks, groups = _tasks(session, rows), subjects.groups_of(session, rows)
    return [_summary(row, tasks[row.id], groups[row.group_id]) for row in rows]


def find(session: Session, model_id: UUID) -> ModelRead:
    """Return a model with its tasks, its history and its graph.

    Raises:
        ServiceNotFoundError: If the model does not exist.
    """
    return read(session, models.get(session, model_id, with_steps=True))


def read(session: Session, row: ModelRow) -> ModelRead:
    """Return a model with its tasks, its history and its graph."""
    tasks = _tasks(session, [row])[row.id]
    summary = _summary(row, tasks, subjects.groups_of(session, [row])[row.group_id])
    float32_peak = session.get_one(TargetRow, row.target).peak_flops
    total_secs = sum(task.row.weight * task.secs for task in tasks if task.secs is not None)
    return ModelRead(
        **summary.model_dump(),
        tasks=tuple(
            _read_task(row.target, task, tasks, total_secs, float32_peak) for task in tasks
        ),
        history=_history(session, tasks),
        steps=tuple(ModelStep.model_validate(step) for step in row.steps),
        webhook=next((task.job.webhook for task in tasks if task.job is not None), None),
    )


def package(session: Session, model_id: UUID) -> ModelPackage:
    """Return the best schedules of the tasks of a model.

    Raises:
        ServiceNotFoundError: If the model does not exist.
    """
    row = models.get(session, model_id)
    query = (
        select(BestScheduleRow, TrialRow)
        .join(ModelTaskRow, ModelTaskRow.workload_key == BestScheduleRow.workload_key)
        .join(
            TrialRow,
            (TrialRow.job_id == BestScheduleRow.job_id)
            & (TrialRow.number == BestScheduleRow.trial_number),
        )
        .where(ModelTaskRow.model_id == row.id, BestScheduleRow.target == row.target)
        .order_by(ModelTaskRow.number)
    )
    return ModelPackage(
        id=row.id,
        target=row.target,
        schedules=tuple(
            ModelSchedule(
                workload_key=best.workload_key,
                sketch=trial.sketch,
                trace=trial.trace,
                run_secs=best.run_secs,
                kind=kind_of(best.run_secs, best.interval, row.target),
            )
            for best, trial in session.execute(query)
        ),
    )


def _tasks(session: Session, rows: Sequence[ModelRow]) -> Mapping[UUID, list[_Task]]:
    """Return the tasks of models with what they refer to, by the model's id."""
    ids = [row.id for row in rows]
    task_rows = models.tasks(session, ids)
    target_of = {row.id: row.target for row in rows}
    # Models have thousands of tasks. A statement of PostgreSQL has 65,535 parameters at most.
    of_models = ModelTaskRow.model_id.in_(ids)
    keys = select(ModelTaskRow.workload_key).where(of_models)
    job_ids = select(ModelTaskRow.job_id).where(of_models)
    jobs = {job.id: job for job in session.scalars(select(JobRow).where(JobRow.id.in_(job_ids)))}
    stored = session.scalars(select(WorkloadRow).where(WorkloadRow.key.in_(keys)))
    workloads = {workload.key: workload for workload in stored}
    query = select(BestScheduleRow).where(
        BestScheduleRow.workload_key.in_(keys), BestScheduleRow.target.in_(set(target_of.values()))
    )
    best = {(row.workload_key, row.target): row for row in session.scalars(query)}
    tasks: dict[UUID, list[_Task]] = defaultdict(list)
    for task in task_rows:
        tasks[task.model_id].append(
            _Task(
                task,
                workloads[task.workload_key],
                None if task.job_id is None else jobs[task.job_id],
                best.get((task.workload_key, target_of[task.model_id])),
            )
        )
    return tasks


def _summary(row: ModelRow, tasks: Sequence[_Task], group: GroupRow) -> ModelSummary:
    jobs = [(task.row.weight, task.job) for task in tasks if task.job is not None]
    return ModelSummary(
        **subjects.summary(row, group, [job for _, job in jobs]).model_dump(),
        num_tasks=len(tasks),
        num_steps=row.num_steps,
        latency_secs=_sum((task.row.weight, task.secs) for task in tasks if task.counts),
        default_secs=_sum((weight, job.default_time.secs) for weight, job in jobs),
    )


def _sum(weighted: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the weighted sum of times; None if one is missing."""
    total = 0.0
    for weight, secs in weighted:
        if secs is None:
            return None
        total += weight * secs
    return total


def _read_task(
    target: str,
    task: _Task,
    tasks: Sequence[_Task],
    total_secs: float,
    float32_peak: float | None,
) -> ModelTaskRead:
    row, workload, job, secs = task.row, task.workload, task.job, task.secs
    peak = targets.peak_of(target, float32_peak, workload.dtype)
    return ModelTaskRead(
        number=row.number,
        workload_key=row.workload_key,
        workload_name=workload.name,
        operators=row.operators,
        weight=row.weight,
        shape=in_words(workload.shape),
        dtype=workload.dtype,
        flops=workload.flops,
        size_bytes=row.size_bytes,
        job_id=row.job_id,
        state=None if job is None else job.state,
        num_measured=0 if job is None else job.num_measured,
        best_secs=secs,
        kind=None if task.best is None else kind_of(secs, task.best.interval, target),
        default_secs=None if job is None else job.default_time.secs,
        share=None if secs is None else row.weight * secs / total_secs,
        peak_share=workload.flops / secs / peak if secs and peak and workload.flops else None,
        next_gain=_next_gain(task, tasks),
    )


def _next_gain(task: _Task, tasks: Sequence[_Task]) -> float | None:
    """Return what the next trial is expected to save of a run of the model, in seconds.

    The formula is that by which the coordinator divides the trials. Here it sees the improvements
    that a job stores, not its trials.
    """
    job = task.job
    if job is None or not job.progress:
        return None
    points = job.progress
    numbers = [point[0] for point in points]

    def best_secs(num_trials: int) -> float:
        index = bisect.bisect_right(numbers, num_trials)
        return points[index - 1][1] if index else math.inf

    rates = [
        other.workload.flops / other.job.progress[-1][1]
        for other in tasks
        if other.job is not None
        and other.job.progress
        and other.workload.name == task.workload.name
    ]
    num_trials, stale = job.num_measured, job.num_measured - int(numbers[-1])
    # A task without operations has no rate: its time can only fall as 1 / t.
    rate = max(rates)
    reach_secs = SLACK * task.workload.flops / rate if rate else best_secs(num_trials)
    return task.row.weight * expected_gain(num_trials, best_secs, max(stale, 0), reach_secs)


def _history(session: Session, tasks: Sequence[_Task]) -> tuple[LatencyPoint, ...]:
    """Return the projected latency of the tasks with jobs, from when each of them had a time."""
    jobs = {task.job.id: (task.row.weight, task.job) for task in tasks if task.job is not None}
    improved = {
        (job.id, int(number) - 1): secs
        for _, job in jobs.values()
        for number, secs in job.progress or ()
    }
    if not improved:
        return ()
    columns = (TrialRow.created_at, TrialRow.job_id, TrialRow.number)
    moments: list[tuple[datetime, UUID, int]] = []
    keys = list(improved)
    for start in range(0, len(keys), MAX_KEYS):
        at = tuple_(TrialRow.job_id, TrialRow.number).in_(keys[start : start + MAX_KEYS])
        moments += [(row[0], row[1], row[2]) for row in session.execute(select(*columns).where(at))]
    times: dict[UUID, float] = {}
    points = []
    for moment, job_id, number in sorted(moments):
        times[job_id] = improved[job_id, number]
        if len(times) == len(jobs):
            latency = sum(jobs[of_job][0] * secs for of_job, secs in times.items())
            points.append(LatencyPoint(at=moment, latency_secs=latency))
    return _thinned(points)


def _thinned(points: Sequence[LatencyPoint]) -> tuple[LatencyPoint, ...]:
    """Return at most `MAX_POINTS` points, with the first and the last."""
    step = -(-len(points) // MAX_POINTS)
    return tuple(points[:: max(step, 1)]) + (tuple(points[-1:]) if step > 1 else ())
