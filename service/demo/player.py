"""Replay recorded jobs as if they were measured now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select

from compiler.runtime.measurement import Measurement, Setting
from service.common.owner import Owner
from service.coordinator.heartbeat import Heartbeat
from service.coordinator.job_runner import JobDriver, JobOutcome
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.jobs import JobRow, NewJob
from service.store.results import finals
from service.store.results.finals import FinalRow
from service.store.results.sql_store import SqlStore
from service.store.tasks import load_task
from service.store.trials import trials
from tuner.finish.baseline import Baseline
from tuner.finish.contest import Finalist, Finish
from tuner.loop.budget import StopReason
from tuner.loop.search_result import SearchResult
from tuner.trial import MeasuredTrial

MAX_PAUSE_SECS = 2.0
"""Longest gap of a replay in seconds; longer ones are shortened for the viewer. Chosen."""
_LOOK_SECS = 0.1
"""Interval at which the controls of jobs are read. Chosen."""


class Player:
    """Replays recorded jobs at their original pace; runs all others normally.

    It adds the trials of the recording in order, then the final comparison and the baselines. A
    replayed job can be stopped, cancelled and resumed like any other.
    """

    def __init__(self, database: Database, owner: Owner, driver: JobDriver) -> None:
        self._database = database
        self._store = SqlStore(database, owner)
        self._driver = driver
        self._sources: dict[UUID, UUID] = {}

    def submit_all(self) -> None:
        """Queue a replay of each job of the store."""
        with self._database.write() as session:
            for source in session.scalars(select(JobRow).order_by(JobRow.created_at)).all():
                row = jobs.submit(session, _again(source))
                self._sources[row.id] = source.id

    def drive(
        self, claimed: Sequence[JobRow], heartbeat: Heartbeat, is_stopping: Callable[[], bool]
    ) -> Iterator[JobOutcome]:
        """Replay a job, or run jobs."""
        [first, *_] = claimed
        if first.num_measured < self._num_recorded(first.id):
            yield self._play(first, heartbeat, is_stopping)
        else:
            yield from self._driver.drive(claimed, heartbeat, is_stopping)

    def _num_recorded(self, job_id: UUID) -> int:
        """Return the number of recorded trials of a job, which then has no group."""
        if job_id not in self._sources:
            return 0
        with self._database.read() as session:
            return jobs.get(session, self._sources[job_id]).num_measured

    def _play(
        self, job: JobRow, heartbeat: Heartbeat, is_stopping: Callable[[], bool]
    ) -> JobOutcome:
        with self._database.read() as session:
            source = jobs.get(session, self._sources[job.id])
            task = load_task(session, job.workload_key, job.target)
            created_at = {row.number: row.created_at for row in trials.of_job(session, source.id)}
            finalists = finals.of_job(session, source.id)
            recorded_baselines = [_baseline(row) for row in source.baselines]
        recorded = self._store.trials(str(source.id))
        played = {trial.number for trial in self._store.trials(str(job.id))}
        last = source.started_at
        reason = source.stop_reason or StopReason.BUDGET
        for trial in sorted(recorded, key=lambda trial: (created_at[trial.number], trial.number)):
            if trial.number in played:
                continue
            if not self._wait(job.id, last, created_at[trial.number], heartbeat, is_stopping):
                return JobOutcome(job.id)
            if heartbeat.controls[job.id].is_stopped:
                reason = StopReason.STOPPED
                break
            last = created_at[trial.number]
            self._store.add(str(job.id), task, [trial])
        result = SearchResult(tuple(self._store.trials(str(job.id))), reason)
        finish = _finish(result.trials, finalists)
        return JobOutcome(job.id, result, finish, () if finish is None else recorded_baselines)

    def _wait(
        self,
        job_id: UUID,
        since: datetime | None,
        until: datetime,
        heartbeat: Heartbeat,
        is_stopping: Callable[[], bool],
    ) -> bool:
        """Wait for the gap of the recording; return whether the job continues."""
        gap = 0.0 if since is None else (until - since).total_seconds()
        end = time.monotonic() + min(gap, MAX_PAUSE_SECS)
        while True:
            job_controls = heartbeat.controls[job_id]
            if heartbeat.is_lost or is_stopping() or job_controls.is_cancelled:
                return False
            remaining_secs = end - time.monotonic()
            if remaining_secs <= 0 or job_controls.is_stopped:
                return True
            time.sleep(min(remaining_secs, _LOOK_SECS))


def _again(source: JobRow) -> NewJob:
    return NewJob(
        workload_key=source.workload_key,
        workload_name=source.workload_name,
        target=source.target,
        max_trials=source.max_trials,
        seed=source.seed,
        strategy=source.strategy,
        rules=source.rules,
        owner=source.owner,
    )


def _finish(played: Sequence[MeasuredTrial], finalists: Sequence[FinalRow]) -> Finish | None:
    """Return the final comparison of the recording, unless some finalists were not replayed."""
    by_number = {trial.number: trial for trial in played}
    if not finalists or any(row.number not in by_number for row in finalists):
        return None
    return Finish(tuple(_finalist(row, by_number[row.number]) for row in finalists))


def _baseline(row: BaselineRow) -> Baseline:
    return Baseline(
        library=row.library,
        version=row.version,
        run_secs=row.run_secs,
        kernel_secs=row.kernel_secs,
        speedup=row.speedup,
        interval=row.interval,
        worker=row.worker,
        toolchain=row.toolchain,
        kernel_set=row.kernel_set or "",
        setting=row.setting or "",
        tried=tuple(Setting(**setting) for setting in row.tried or ()),
        is_below_cpu=row.is_below_cpu,
        share_of_peak=row.share_of_peak,
    )


def _finalist(row: FinalRow, trial: MeasuredTrial) -> Finalist:
    rounds = [
        Measurement(run_secs=tuple(secs), worker=row.workers[0], toolchain=row.toolchain)
        for secs in row.rounds
    ]
    if row.error is not None:
        rounds.append(Measurement(error=row.error, message=row.message, toolchain=row.toolchain))
    infinite = float("inf")
    secs, low, high = (
        infinite if value is None else value
        for value in (row.run_secs, row.low_secs, row.high_secs)
    )
    return Finalist(trial, tuple(rounds), row.outcome, secs, (low, high))
