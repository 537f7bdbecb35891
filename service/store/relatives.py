"""Related tasks: the tuned tasks of one operator, and their best trials."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.targets import TargetRow, has_timing_label
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow


@dataclass(frozen=True)
class TunedTask:
    """A task with a best schedule; `shape` distinguishes it from others of its operator."""

    workload_key: str
    target: str
    shape: Mapping[str, Any]
    run_secs: float


def of_operator(session: Session, operator_key: str, label: str) -> list[TunedTask]:
    """Return all tuned tasks of an operator on targets of one timing label, in a fixed order."""
    query = (
        select(
            BestScheduleRow.workload_key,
            BestScheduleRow.target,
            WorkloadRow.shape,
            BestScheduleRow.run_secs,
        )
        .join(WorkloadRow, WorkloadRow.key == BestScheduleRow.workload_key)
        .join(TargetRow, TargetRow.name == BestScheduleRow.target)
        .where(WorkloadRow.operator_key == operator_key, has_timing_label(label))
        .order_by(BestScheduleRow.workload_key, BestScheduleRow.target)
    )
    return [TunedTask(*row) for row in session.execute(query)]


def best_trials(session: Session, workload_key: str, target: str, *, limit: int) -> list[TrialRow]:
    """Return the best trial of a task, then the fastest others of all its jobs.

    Each candidate occurs once.
    """
    is_best = (TrialRow.job_id == BestScheduleRow.job_id) & (
        TrialRow.number == BestScheduleRow.trial_number
    )
    query = (
        select(TrialRow)
        .join(JobRow, JobRow.id == TrialRow.job_id)
        .join(
            BestScheduleRow,
            (BestScheduleRow.workload_key == JobRow.workload_key)
            & (BestScheduleRow.target == JobRow.target),
        )
        .where(
            JobRow.workload_key == workload_key,
            JobRow.target == target,
            TrialRow.best_secs.is_not(None),
        )
        .order_by(is_best.desc(), TrialRow.best_secs, JobRow.created_at, TrialRow.number)
    )
    by_candidate: dict[str, TrialRow] = {}
    with closing(session.scalars(query.execution_options(yield_per=4 * limit))) as rows:
        for row in rows:
            by_candidate.setdefault(row.candidate_key, row)
            if len(by_candidate) == limit:
                break
    return list(by_candidate.values())
