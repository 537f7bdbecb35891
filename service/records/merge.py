"""Merge a file of records into a store: what is there stays, what is new is added.

The outcome depends on what was merged and not on its order: rows are known by their ids, of two
versions of a job the later one counts, and the best schedules are found again from all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from compiler.target import Target
from loopwright.models import JobState, Workload
from loopwright.server_models import ImportRead
from service.intake import read_workload
from service.records.best import settle
from service.records.check import check_file, parsed, refusal
from service.records.lines import (
    FinalLine,
    JobLine,
    Line,
    TrialLine,
    WorkloadLine,
    is_later,
    values,
    written,
)
from service.store import jobs, targets, workloads
from service.store.database import Database
from service.store.finals import FinalRow
from service.store.jobs import JobRow
from service.store.trials import TrialRow
from service.store.workloads import WorkloadRow
from tuner.budget import StopReason
from tuner.progress import add_point

_ROWS = 500

LineT = TypeVar("LineT", TrialLine, FinalLine)


def import_records(database: Database, lines: Callable[[], Iterable[bytes]]) -> ImportRead:
    """Add the records of a file to a store, all of them or none.

    Args:
        lines: Gives the lines of the file, each time from the first.

    Raises:
        InvalidRequestError: If a line is wrong, or says otherwise than the store of the same trial.
    """
    check_file(lines())
    with database.write() as session:
        merge = _Merge(session)
        for number, line in parsed(lines()):
            merge.see(number, line)
        return merge.end()


@dataclass
class _Job:
    """The job whose lines are being read."""

    line: JobLine
    number: int
    row: JobRow | None  # as the store had it
    num_trials: int = 0
    num_new: int = 0
    last_at: datetime | None = None
    trials: list[tuple[int, TrialLine]] = field(default_factory=list)
    finals: list[tuple[int, FinalLine]] = field(default_factory=list)

    @property
    def ended(self) -> JobLine:
        """The line, of a job that has ended: one that had not when it was written ends here."""
        if self.line.state.is_final:
            return self.line
        return self.line.model_copy(
            update={
                "state": JobState.CANCELLED,
                "stop_reason": StopReason.CANCELLED,
                "finished_at": self.last_at or self.line.created_at,
                "error": f"it was {self.line.state} where these records are from; resume it here,"
                " or import what came of it there",
            }
        )

    @property
    def is_skipped(self) -> bool:
        """Whether the job goes on in this store, which knows more of it than any file."""
        return self.row is not None and not self.row.state.is_final


class _Merge:
    """Takes the lines of one file, in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._job: _Job | None = None
        self._tasks: set[tuple[str, str]] = set()
        self._num = dict.fromkeys(ImportRead.model_fields, 0)

    def see(self, number: int, line: Line) -> None:
        """Take a line."""
        match line:
            case WorkloadLine():
                self._workload(line)
            case JobLine():
                self._end_job()
                row = self._session.get(JobRow, line.id, with_for_update=True)
                self._job = _Job(line, number, row)
                self._begin_job(self._job)
            case TrialLine() if self._job is not None and not self._job.is_skipped:
                self._job.num_trials += 1
                self._job.last_at = max(self._job.last_at or line.created_at, line.created_at)
                self._job.trials.append((number, line))
                if len(self._job.trials) == _ROWS:
                    self._add_trials(self._job)
            case FinalLine() if self._job is not None and not self._job.is_skipped:
                self._job.finals.append((number, line))

    def end(self) -> ImportRead:
        """Bring what follows from the rows up to date, and say what was added."""
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

    def _begin_job(self, job: _Job) -> None:
        if job.row is None:
            targets.ensure(self._session, job.line.target, Target(job.line.target).label)
            name = self._session.get_one(WorkloadRow, job.line.workload_key).name
            row = JobRow(**_columns(job.ended), workload_name=name, num_measured=0)
            self._session.add(row)
            self._session.flush()
            self._num["jobs"] += 1
        elif (job.row.workload_key, job.row.target) != (job.line.workload_key, job.line.target):
            detail = f"job {job.line.id} is there already, and is for another task"
            raise refusal([(job.number, detail)])
        elif job.is_skipped:
            self._num["skipped_jobs"] += 1

    def _end_job(self) -> None:
        job, self._job = self._job, None
        if job is None or job.is_skipped:
            return
        self._add_trials(job)
        self._add_finals(job)
        row = job.row or self._session.get_one(JobRow, job.line.id)
        is_changed = job.row is None or job.num_new > 0
        there = JobLine.model_validate(row)
        if is_later((job.num_trials, job.ended), (row.num_measured, there)):
            for name, value in _columns(job.ended).items():
                setattr(row, name, value)
            is_changed = True
        if job.num_new:
            self._count(row)
        if is_changed:
            self._tasks.add((row.workload_key, row.target))
            self._num["updated_jobs"] += job.row is not None
            jobs.record_state(self._session, row, imported=True)

    def _count(self, row: JobRow) -> None:
        """Count a job's trials again, and where its best time improved."""
        found = self._session.execute(
            select(TrialRow.number, TrialRow.best_secs)
            .where(TrialRow.job_id == row.id)
            .order_by(TrialRow.number)
        ).all()
        row.num_measured = len(found)
        points: list[Any] = []
        best = float("inf")
        for place, (_, secs) in enumerate(found, start=1):
            if secs is not None and secs < best:
                best = secs
                points = add_point(points, place, secs)
        row.progress = [list(point) for point in points] or None

    def _add_trials(self, job: _Job) -> None:
        new = self._unknown(TrialRow, job.trials)
        if new:
            self._refuse_other_numbers(job.line.id, new)
            rows = [values(line) | {"best_secs": line.best_secs} for _, line in new]
            self._session.execute(insert(TrialRow), rows)
        job.num_new += len(new)
        self._num["trials"] += len(new)
        job.trials = []

    def _add_finals(self, job: _Job) -> None:
        new = self._unknown(FinalRow, job.finals)
        if new:
            self._session.execute(insert(FinalRow), [values(line) for _, line in new])
        job.num_new += len(new)
        self._num["finals"] += len(new)

    def _unknown(
        self, table: type[TrialRow | FinalRow], lines: list[tuple[int, LineT]]
    ) -> list[tuple[int, LineT]]:
        """Return the lines that the store does not have, and refuse those that it has otherwise."""
        if not lines:
            return []
        first = lines[0][1]
        rows = self._session.scalars(
            select(table).where(
                table.job_id == first.job_id, table.number.in_([line.number for _, line in lines])
            )
        )
        there = {_place(row): written(type(first).model_validate(row)) for row in rows}
        for number, line in lines:
            if there.get(_place(line), written(line)) != written(line):
                detail = f"the store has another {line.kind} {line.number} of job {line.job_id}"
                raise refusal([(number, detail)])
        return [(number, line) for number, line in lines if _place(line) not in there]

    def _refuse_other_numbers(self, job_id: UUID, new: list[tuple[int, TrialLine]]) -> None:
        """Name a candidate that the store has under another number; a key would refuse it too."""
        of_key = {line.candidate_key: number for number, line in new}
        found = self._session.execute(
            select(TrialRow.number, TrialRow.candidate_key).where(
                TrialRow.job_id == job_id, TrialRow.candidate_key.in_(list(of_key))
            )
        ).first()
        if found is not None:
            detail = f"the store has its candidate as trial {found[0]} of job {job_id}"
            raise refusal([(of_key[found[1]], detail)])


def _place(it: Any) -> tuple[int, int]:
    """Return what tells trials of one job apart, and finals."""
    return getattr(it, "finish", 0), it.number


def _columns(line: JobLine) -> dict[str, Any]:
    return values(line) | {"rules": None if line.rules is None else list(line.rules)}
