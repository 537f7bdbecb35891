"""Write the records of a store as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, undefer

from service.common.errors import ServiceNotFoundError
from service.records.lines import (
    TRIAL_COLUMNS,
    BaselineLine,
    End,
    FinalLine,
    GroupLine,
    Header,
    JobLine,
    Line,
    TargetLine,
    TrialLine,
    WorkloadLine,
    written,
)
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs.baselines import BaselineRow
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.store.results.finals import FinalRow
from service.store.targets import TargetRow
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow

_ROWS = 200
_CHUNK_CHARS = 1 << 16


@dataclass(frozen=True)
class Selection:
    """The jobs to write; by default all."""

    job_ids: Collection[UUID] = ()
    workload_key: str | None = None
    target: str | None = None

    def of(self, query: Select[JobRow]) -> Select[JobRow]:
        """Return a query of jobs, restricted to this selection."""
        if self.job_ids:
            query = query.where(JobRow.id.in_(self.job_ids))
        if self.workload_key is not None:
            query = query.where(JobRow.workload_key == self.workload_key)
        if self.target is not None:
            query = query.where(JobRow.target == self.target)
        return query


def check(database: Database, selection: Selection) -> None:
    """Refuse unknown jobs before the answer begins, so that it can have an error status.

    Raises:
        ServiceNotFoundError: If one of the jobs does not exist.
    """
    with database.read() as session:
        for job_id in selection.job_ids:
            if session.get(JobRow, job_id) is None:
                raise ServiceNotFoundError(f"no job {job_id}")


def export(database: Database, selection: Selection) -> Iterator[str]:
    """Yield the text of a records file, in pieces; it shows the store at one moment."""
    with database.read() as session:
        piece: list[str] = []
        size = 0
        for line in _lines(session, selection):
            piece.append(written(line))
            size += len(piece[-1])
            if size >= _CHUNK_CHARS:
                yield "".join(piece)
                piece, size = [], 0
        yield "".join(piece)


def _lines(session: Session, selection: Selection) -> Iterator[Line]:
    yield Header(loopwright=version("loopwright"), exported_at=utc_now())
    num_lines = 0
    for line in _content(session, selection):
        num_lines += 1
        yield line
    yield End(num_lines=num_lines)


def _content(session: Session, selection: Selection) -> Iterator[Line]:
    jobs = session.scalars(
        selection.of(select(JobRow)).order_by(JobRow.created_at, JobRow.id)
    ).all()
    for key in sorted({job.workload_key for job in jobs}):
        yield WorkloadLine.model_validate(session.get_one(WorkloadRow, key))
    for name in sorted({job.target for job in jobs}):
        yield TargetLine.model_validate(session.get_one(TargetRow, name))
    for group_id in sorted({job.group_id for job in jobs if job.group_id is not None}):
        yield GroupLine.model_validate(session.get_one(GroupRow, group_id))
    for job in jobs:
        yield JobLine.model_validate(job)
        yield from _trials(session, job)
        finals = select(FinalRow).where(FinalRow.job_id == job.id).options(undefer(FinalRow.rounds))
        for final in session.scalars(finals.order_by(FinalRow.finish, FinalRow.number)):
            yield FinalLine.model_validate(final)
        baselines = select(BaselineRow).where(BaselineRow.job_id == job.id)
        for baseline in session.scalars(baselines.order_by(BaselineRow.library)):
            yield BaselineLine.model_validate(baseline)


def _trials(session: Session, job: JobRow) -> Iterator[TrialLine]:
    """Yield the trials of a job one by one: all trials together do not fit into memory."""
    columns = (getattr(TrialRow, name) for name in TRIAL_COLUMNS)
    query = select(*columns).where(TrialRow.job_id == job.id).order_by(TrialRow.number)
    for row in session.execute(query.execution_options(yield_per=_ROWS)):
        yield TrialLine.model_validate(row)
