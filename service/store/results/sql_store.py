"""The tuner's measurement store over SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from compiler.runtime.conditions import TimingConditions
from compiler.runtime.measurement import STORED_FIELDS, Measurement
from compiler.runtime.resources import KernelResources
from compiler.schedule.trace.trace_json import decided_numbers
from service.common.owner import Owner
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.database.together import GroupCommit
from service.store.jobs import blame, events, jobs, leases
from service.store.jobs.jobs import JobRow
from service.store.results import best_schedules, toolchains
from service.store.results.settle import settle
from service.store.tasks import parse_candidate
from service.store.trials import sketches, trial_chunks, trials
from service.store.trials.trials import TrialRow
from service.wire.models import EventKind
from service.wire.times import kind_of
from tuner.loop.progress import add_point
from tuner.store.store import DuplicateTrialError
from tuner.task import Task
from tuner.trial import MeasuredTrial


class SqlStore:
    """Stores trials in a database; see `tuner.store.MeasurementStore`.

    The row of a job exists before its trials. The new trials, the job's counters, the best schedule
    of the task and the job's event change in one transaction.

    Args:
        owner: If given, `add` refuses (`LeaseLostError`) a job whose lease it does not hold.
        commits: Stores trials together with those of other stores of the process.
    """

    def __init__(
        self,
        database: Database,
        owner: Owner | None = None,
        commits: GroupCommit | None = None,
    ) -> None:
        self._database = database
        self._owner = owner
        self._commits = commits or GroupCommit(database)

    def add(self, job_id: str, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Store trials of a job, all of them or none."""
        if trials:
            self._commits.write(lambda session: self._add(session, UUID(job_id), task, trials))

    def _add(
        self, session: Session, job_id: UUID, task: Task, trials: Sequence[MeasuredTrial]
    ) -> None:
        job = self._job(session, job_id)
        assert (job.workload_key, job.target) == (task.workload_key, task.target.name)
        _refuse_duplicates(session, job, trials)
        rows = sorted((_row(job.id, trial) for trial in trials), key=lambda row: row.number)
        # All changes of the job come before the first flush: one statement writes them.
        blame.note_progress(session, job)
        for row in rows:
            _count(job, row)
        session.add_all(rows)
        session.flush()
        for row in rows:
            best_schedules.offer(session, job, row)
            if row.error in toolchains.WRONG and not toolchains.is_outdated(row.toolchain):
                _refute(session, job, row)
        sketches.ensure(
            session, job.id, job.workload_key, {trial.candidate.sketch for trial in trials}
        )
        if trial_chunks.is_due(job.num_measured - len(trials), job.num_measured):
            trial_chunks.pack(session, job.id, job.num_measured)
        payload = {
            "num_measured": job.num_measured,
            "best_secs": job.best_secs,
            "best_kind": kind_of(job.best_secs, job.best_interval, job.target),
            "provisional_secs": job.provisional_secs,
            "default_secs": job.default_secs,
        }
        events.append(session, job.id, EventKind.TRIALS, payload)

    def trials(self, job_id: str) -> list[MeasuredTrial]:
        """Return the trials of a job by their numbers; an unknown job has none."""
        try:
            job_uuid = UUID(job_id)
        except ValueError:
            return []
        with self._database.read() as session:
            return [_trial(row) for row in trials.of_job(session, job_uuid)]

    def best(self, task_key: str) -> MeasuredTrial | None:
        """Return the fastest correct trial of a task over all jobs; the earliest of equals."""
        workload_key, _, target = task_key.partition("@")
        with self._database.read() as session:
            row = best_schedules.find(session, workload_key, target)
            return None if row is None else _trial(row.trial)

    def _job(self, session: Session, job_id: UUID) -> JobRow:
        if self._owner is None:
            return jobs.get(session, job_id, lock=True)
        return leases.owned(session, job_id, str(self._owner))


def _refuse_duplicates(session: Session, job: JobRow, added: Sequence[MeasuredTrial]) -> None:
    """Refuse a duplicate with its name; the table's keys would refuse it without."""
    stored = session.execute(
        select(TrialRow.number, TrialRow.candidate_key).where(
            TrialRow.job_id == job.id,
            or_(
                TrialRow.number.in_([t.number for t in added]),
                TrialRow.candidate_key.in_([t.candidate.key for t in added]),
            ),
        )
    ).all()
    numbers, keys = {row[0] for row in stored}, {row[1] for row in stored}
    for trial in added:
        if trial.number in numbers:
            raise DuplicateTrialError(f"job {job.id} has a trial {trial.number} already")
        if trial.candidate.key in keys:
            raise DuplicateTrialError(
                f"job {job.id} has measured candidate {trial.candidate.key[:12]} already"
            )
        numbers.add(trial.number)
        keys.add(trial.candidate.key)


def _count(job: JobRow, trial: TrialRow) -> None:
    job.num_measured += 1
    if trial.best_secs is None:
        return
    if trial.number == 0:
        job.default_secs = trial.best_secs
    if job.provisional_secs is None or trial.best_secs < job.provisional_secs:
        job.progress = list(
            map(list, add_point(job.progress or [], job.num_measured, trial.best_secs))
        )
        # A confirmed time is a median: only the next final comparison replaces it, not a sample.
        if job.best_interval is None:
            job.best_secs = trial.best_secs


def _refute(session: Session, job: JobRow, trial: TrialRow) -> None:
    """Replace a best schedule of which the current code generator makes a wrong kernel."""
    best = best_schedules.find(session, job.workload_key, job.target)
    if best is not None and best.trial.candidate_key == trial.candidate_key:
        settle(session, job.workload_key, job.target)


def _row(job_id: UUID, trial: MeasuredTrial) -> TrialRow:
    measurement = trial.measurement
    stored = {name: getattr(measurement, name) for name in STORED_FIELDS}
    # JSON has lists, and PostgreSQL stores no zero character in a text.
    stored["run_secs"] = list(measurement.run_secs)
    stored["resources"] = None if measurement.resources is None else asdict(measurement.resources)
    conditions = measurement.conditions
    stored["conditions"] = None if conditions is None else asdict(conditions)
    stored["message"] = measurement.message.replace("\0", "\\0")
    trace = trial.candidate.trace.to_json()
    return TrialRow(
        job_id=job_id,
        number=trial.number,
        candidate_key=trial.candidate.key,
        round=trial.round,
        sketch=trial.candidate.sketch,
        trace=trace,
        decisions=decided_numbers(trace),
        predicted=trial.predicted,
        best_secs=measurement.best_secs if measurement.ok else None,
        created_at=utc_now(),
        **stored,
    )


def _trial(row: TrialRow) -> MeasuredTrial:
    stored = {name: getattr(row, name) for name in STORED_FIELDS}
    stored["run_secs"] = tuple(row.run_secs)
    stored["resources"] = None if row.resources is None else KernelResources(**row.resources)
    conditions = row.conditions
    stored["conditions"] = None if conditions is None else TimingConditions.from_json(conditions)
    return MeasuredTrial(
        number=row.number,
        candidate=parse_candidate(row.sketch, row.trace),
        measurement=Measurement(**stored),
        predicted=row.predicted,
        round=row.round,
    )
