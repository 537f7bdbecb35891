"""Merge a records file into a store: add new records, keep existing ones.

The result does not depend on the order of imports. Rows are identified by their ids, the later of
two versions of a job is kept, and the best schedules are computed again from all trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.orm import Session, undefer

from compiler.target.target import Target
from service.intake.request_validation import read_workload
from service.records.check import refusal
from service.records.lines import (
    BaselineLine,
    FinalLine,
    GroupLine,
    JobLine,
    TargetLine,
    WorkloadLine,
    is_later,
    values,
    written,
)
from service.records.staging import StagedLine, Staging
from service.store import targets, workloads
from service.store.database.database import Database
from service.store.jobs import groups, jobs
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.store.results import finals
from service.store.results.finals import FinalRow
from service.store.results.settle import settle
from service.store.targets import TargetRow
from service.store.trials import sketches, trial_chunks
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow
from service.wire.models import JobState
from service.wire.requests import Workload
from service.wire.server_models import ImportRead
from tuner.finish.contest import Outcome
from tuner.loop.budget import StopReason
from tuner.loop.progress import add_point

_MEMBERSHIP = ("group_id", "weight")


def import_records(database: Database, lines: Iterable[bytes]) -> ImportRead:
    """Add the records of a file to a store, all of them or none.

    Others can write to the store until the whole file has been read and checked.

    Raises:
        UnprocessableError: If a line is invalid, or contradicts the store.
    """
    with database.aside() as connection:
        with connection.begin():
            staging = Staging(connection)
            staging.fill(lines)
        with connection.begin():
            staging.drop_known()
        with database.write(connection) as session:
            merge = _Merge(session, staging)
            for staged in staging.lines():
                merge.see(staged)
            return merge.end()


@dataclass
class _Job:
    """The current job, whose lines are being read."""

    staged: StagedLine
    line: JobLine
    row: JobRow | None  # before the import
    num_new: int = 0
    finals: list[tuple[int, FinalLine]] = field(default_factory=list)
    baselines: list[BaselineLine] = field(default_factory=list)

    @property
    def ended(self) -> JobLine:
        """Return the line of the job; a job that was open at its export is ended as cancelled."""
        if self.line.state.is_final:
            return self.line
        return self.line.model_copy(
            update={
                "state": JobState.CANCELLED,
                "stop_reason": StopReason.CANCELLED,
                "finished_at": self.staged.last_at or self.line.created_at,
                "error": f"it was {self.line.state} when these records were exported; resume it "
                "here, or import the finished job later",
            }
        )

    @property
    def is_skipped(self) -> bool:
        """Return whether the job is open in this store, which is newer than any file."""
        return self.row is not None and not self.row.state.is_final


class _Merge:
    """Merges the lines of one file, in one transaction."""

    def __init__(self, session: Session, staging: Staging) -> None:
        self._session = session
        self._staging = staging
        self._job: _Job | None = None
        self._budgets: dict[UUID, tuple[int, int]] = {}  # of groups: (in the file, in the store)
        self._tasks: set[tuple[str, str]] = set()
        self._num = dict.fromkeys(ImportRead.model_fields, 0)

    def see(self, staged: StagedLine) -> None:
        """Merge a line."""
        match staged.line:
            case WorkloadLine() as line:
                self._workload(line)
            case TargetLine() as line:
                self._target(line)
            case GroupLine() as line:
                self._group(line)
            case JobLine() as line:
                self._end_job()
                self._begin_job(staged, line)
            case FinalLine() as line if self._job is not None and not self._job.is_skipped:
                self._job.finals.append((staged.number, line))
            case BaselineLine() as line if self._job is not None and not self._job.is_skipped:
                self._job.baselines.append(line)

    def end(self) -> ImportRead:
        """Update the values that are derived from the rows, and return what was added."""
        self._end_job()
        self._session.flush()
        for workload_key, target in sorted(self._tasks):
            self._num["best_schedules"] += settle(self._session, workload_key, target)
        return ImportRead(**self._num)

    def _workload(self, line: WorkloadLine) -> None:
        if self._session.get(WorkloadRow, line.key) is None:
            workloads.ensure(self._session, read_workload(Workload(script=line.script)))
            self._session.get_one(WorkloadRow, line.key).created_at = line.created_at
            self._num["workloads"] += 1

    def _target(self, line: TargetLine) -> None:
        """Keep a target with the higher of two peaks, which is nearer to the true one."""
        targets.ensure(self._session, line.name, Target(line.name).label)
        if line.peak_flops is not None:
            row = self._session.get_one(TargetRow, line.name)
            row.peak_flops = max(row.peak_flops or 0.0, line.peak_flops)

    def _group(self, line: GroupLine) -> None:
        """Keep a group with the larger of two trial limits; keep the store's if a job is open."""
        row = self._session.get(GroupRow, line.id, with_for_update=True)
        if row is None:
            row = GroupRow(**values(line))
            self._session.add(row)
            self._num["groups"] += 1
        elif row.max_trials < line.max_trials:
            members = groups.members(self._session, line.id)
            if all(member.state.is_final for member in members):
                groups.set_budget(row, members, line.max_trials)
        self._budgets[line.id] = (line.max_trials, row.max_trials)

    def _begin_job(self, staged: StagedLine, line: JobLine) -> None:
        row = self._session.get(JobRow, line.id, with_for_update=True)
        in_file, in_store = self._budgets[line.group_id] if line.group_id else (0, 0)
        if line.max_trials == in_file:  # it has no limit of its own
            line = line.model_copy(update={"max_trials": in_store})
        job = self._job = _Job(staged, line, row)
        if row is None:
            targets.ensure(self._session, line.target, Target(line.target).label)
            name = self._session.get_one(WorkloadRow, line.workload_key).name
            self._session.add(JobRow(**_columns(job.ended), workload_name=name, num_measured=0))
            self._session.flush()
            self._num["jobs"] += 1
        else:
            self._refuse_another(job, row)
            self._num["skipped_jobs"] += job.is_skipped

    def _refuse_another(self, job: _Job, row: JobRow) -> None:
        line = job.line
        if (row.workload_key, row.target) != (line.workload_key, line.target):
            detail = f"job {line.id} exists for another task"
            raise refusal([(job.staged.number, detail)])
        if None in (row.group_id, line.group_id):  # files of version 1 have no groups
            return
        if (row.group_id, row.weight) != (line.group_id, line.weight):
            detail = f"job {line.id} exists with another group or weight"
            raise refusal([(job.staged.number, detail)])

    def _end_job(self) -> None:
        job, self._job = self._job, None
        if job is None or job.is_skipped:
            return
        self._add_trials(job)
        self._add_finals(job)
        row = job.row or self._session.get_one(JobRow, job.line.id)
        is_changed = job.row is None or job.num_new > 0
        new: dict[str, Any] = {}
        stored = JobLine.model_validate(row)
        if is_later((job.staged.num_trials, job.ended), (row.num_measured, stored)):
            new = values(job.ended, *_MEMBERSHIP) | _lists(job.line)
        if row.group_id is None and job.line.group_id is not None:
            new |= {name: getattr(job.line, name) for name in _MEMBERSHIP}
        for name, value in new.items():
            setattr(row, name, value)
        if job.num_new:
            self._count(row)
        is_changed |= self._add_baselines(job, row)
        if is_changed or new:
            self._tasks.add((row.workload_key, row.target))
            self._num["updated_jobs"] += job.row is not None
            jobs.record_state(self._session, row, imported=True)

    def _count(self, row: JobRow) -> None:
        """Count a job's trials again, and find the improvements of its best time again."""
        rows = self._session.execute(
            select(TrialRow.number, TrialRow.best_secs)
            .where(TrialRow.job_id == row.id)
            .order_by(TrialRow.number)
        ).all()
        row.num_measured = len(rows)
        points: list[Any] = []
        best = float("inf")
        for index, (_, secs) in enumerate(rows, start=1):
            if secs is not None and secs < best:
                best = secs
                points = add_point(points, index, secs)
        row.progress = [list(point) for point in points] or None
        trial_chunks.pack(self._session, row.id, row.num_measured)

    def _add_trials(self, job: _Job) -> None:
        if job.row is not None:
            self._staging.drop_known(job.line.id)
            self._staging.refuse_other_numbers(job.line.id)
        num_trials = self._staging.move_trials(job.line.id)
        if num_trials:
            row = self._session.get_one(JobRow, job.line.id)
            of_job = select(TrialRow.sketch).where(TrialRow.job_id == row.id).distinct()
            names = self._session.scalars(of_job)
            sketches.ensure(self._session, row.id, row.workload_key, names)
        job.num_new += num_trials
        self._num["trials"] += num_trials

    def _add_finals(self, job: _Job) -> None:
        """Add the finals that the store does not have, and refuse those that contradict it."""
        query = select(FinalRow).where(FinalRow.job_id == job.line.id)
        rows = self._session.scalars(query.options(undefer(FinalRow.rounds)))
        stored = {(row.finish, row.number): written(FinalLine.model_validate(row)) for row in rows}
        new = []
        for number, line in job.finals:
            stored_text = stored.get((line.finish, line.number))
            if stored_text is None:
                new.append(values(line))
            elif stored_text != written(line):
                detail = f"the store has another final {line.number} of job {line.job_id}"
                raise refusal([(number, detail)])
        if new:
            self._session.execute(insert(FinalRow), new)
        job.num_new += len(new)
        self._num["finals"] += len(new)

    def _add_baselines(self, job: _Job, row: JobRow) -> bool:
        """Keep the newest baselines of the final trial; return whether they change.

        Baselines of one final comparison stay together.
        """
        query = select(BaselineRow).where(BaselineRow.job_id == row.id)
        stored_rows = self._session.scalars(query.order_by(BaselineRow.library)).all()
        stored = [BaselineLine.model_validate(stored_row) for stored_row in stored_rows]
        imported = sorted(job.baselines, key=lambda line: line.library)
        winner_numbers = {
            f.number for f in finals.of_job(self._session, row.id) if f.outcome is Outcome.KEPT
        }
        fitting = [
            some
            for some in (stored, imported)
            if some and {b.trial_number for b in some} <= winner_numbers
        ]
        best = max(fitting, key=_baselines_rank, default=[])
        if best == stored:
            return False
        for stored_row in stored_rows:
            self._session.delete(stored_row)
        self._session.flush()
        self._session.add_all(BaselineRow(**values(line)) for line in best)
        self._num["baselines"] += len(best)
        return True


def _baselines_rank(some: Sequence[BaselineLine]) -> tuple[datetime, list[str]]:
    return max(line.created_at for line in some), [written(line) for line in some]


def _columns(line: JobLine) -> dict[str, Any]:
    return values(line) | _lists(line)


def _lists(line: JobLine) -> dict[str, Any]:
    """Return the columns of a job that are lists."""
    rules = None if line.rules is None else list(line.rules)
    return {"rules": rules, "tags": list(line.tags)}
