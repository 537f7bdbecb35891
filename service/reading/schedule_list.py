"""The best schedules as a list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, case, func, select
from sqlalchemy.orm import Session

from service.common.paging import CursorKey, page
from service.reading.lists import as_page, contains, has_shape
from service.reading.queries import SchedulesQuery
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow, baseline_of
from service.store.results.finals import FinalRow, measured_by
from service.store.results.toolchains import is_outdated
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow
from service.wire.models import Page
from service.wire.readings import BestSummary


def list_schedules(session: Session, query: SchedulesQuery) -> Page[BestSummary]:
    """Return a page of best schedules.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = (
        select(BestScheduleRow, JobRow, measured_by(), TrialRow.worker, TrialRow.best_secs)
        .join(JobRow, JobRow.id == BestScheduleRow.job_id)
        .join(
            TrialRow,
            (TrialRow.job_id == BestScheduleRow.job_id)
            & (TrialRow.number == BestScheduleRow.trial_number),
        )
        .join(WorkloadRow, WorkloadRow.key == BestScheduleRow.workload_key)
    )
    if query.operator is not None:
        statement = statement.where(WorkloadRow.name == query.operator)
    if query.target is not None:
        statement = statement.where(contains(query.target, BestScheduleRow.target))
    if query.text is not None:
        fields = (WorkloadRow.name, WorkloadRow.key, BestScheduleRow.target)
        shaped = has_shape(query.text, BestScheduleRow.workload_key)
        statement = statement.where(contains(query.text, *fields) | shaped)
    run_secs = BestScheduleRow.run_secs
    by: dict[str, CursorKey] = {
        "created_at": CursorKey(BestScheduleRow.updated_at, datetime),
        "run_secs": CursorKey(run_secs, float),
        "workload_name": CursorKey(WorkloadRow.name, str),
        "speedup": CursorKey(_speedup(), float, is_nullable=True),
        "flops_per_sec": CursorKey(WorkloadRow.flops / run_secs, float),
        "baseline": CursorKey(_least_speedup(), float, is_nullable=True),
    }
    keys = [
        by[query.sort.removeprefix("-")],
        CursorKey(BestScheduleRow.workload_key, str),
        CursorKey(BestScheduleRow.target, str),
    ]
    return as_page(page(session, statement, keys, query.asked("schedules", query.sort)), _read)


def _read(
    best: BestScheduleRow, job: JobRow, toolchain: str, worker: str, provisional_secs: float | None
) -> BestSummary:
    default = job.default_time
    return BestSummary(
        workload_key=best.workload_key,
        workload_name=job.workload_name,
        shape=job.shape,
        dtype=job.dtype,
        target=best.target,
        run_secs=best.run_secs,
        interval=best.interval,
        provisional_secs=provisional_secs,
        default_secs=default.secs,
        default_interval=default.interval,
        default_provisional_secs=default.provisional_secs,
        flops=job.flops or 0,
        peak_flops=job.peak_flops,
        job_id=best.job_id,
        trial_number=best.trial_number,
        toolchain=toolchain,
        is_outdated=is_outdated(toolchain),
        worker=worker,
        created_at=best.updated_at,
        baseline=baseline_of(best, job),
    )


def _speedup() -> ColumnElement[Any]:
    """Return the speed-up of a schedule over the default, from two times of one kind."""
    confirmed = (
        select(FinalRow.run_secs)
        .where(
            FinalRow.job_id == JobRow.id,
            FinalRow.finish == JobRow.num_finishes,
            FinalRow.number == 0,
        )
        .correlate(JobRow)
        .scalar_subquery()
    )
    return (
        case(
            (BestScheduleRow.low_secs.is_not(None) & confirmed.is_not(None), confirmed),
            else_=JobRow.default_secs * BestScheduleRow.run_secs / TrialRow.best_secs,
        )
        / BestScheduleRow.run_secs
    )


def _least_speedup() -> ScalarSelect[float | None]:
    """Return the speed-up of a schedule over its fastest baseline."""
    return (
        select(func.min(BaselineRow.speedup))
        .where(
            BaselineRow.job_id == BestScheduleRow.job_id,
            BaselineRow.trial_number == BestScheduleRow.trial_number,
        )
        .correlate(BestScheduleRow)
        .scalar_subquery()
    )
