"""Which measurements were made with another code generator than that of this process.

Such a time says nothing of the kernel that is compiled today. The row is kept, and marked wherever
it is served; it gives way as soon as the same candidate is measured with today's code generator.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from compiler.driver import toolchains
from compiler.runtime.measurement import ErrorKind
from service.store.jobs.jobs import JobRow
from service.store.trials.trials import TrialRow

# A candidate that fails so is wrong today; other failures may be the host's.
WRONG = (ErrorKind.BUILD_ERROR, ErrorKind.WRONG_RESULT, ErrorKind.CRASH)
_UNKNOWN = ""


def is_outdated(made_by: str) -> bool:
    """Say whether a measurement was made with another code generator than today's."""
    return made_by not in {_UNKNOWN, *toolchains()}


def is_old(made_by: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    """Return `is_outdated` as a condition on a column."""
    return made_by.not_in(sorted({_UNKNOWN, *toolchains()}))


def measured_today(workload_key: str, target: str, *, is_wrong: bool) -> ColumnElement[bool]:
    """Return a condition: today's code generator compiled the candidate of the selected `TrialRow`.

    Args:
        workload_key: The workload of the task.
        target: Its target.
        is_wrong: Whether the kernel was wrong, or else ran and was correct.
    """
    again, job = aliased(TrialRow), aliased(JobRow)
    return exists().where(
        again.job_id == job.id,
        job.workload_key == workload_key,
        job.target == target,
        again.candidate_key == TrialRow.candidate_key,
        again.toolchain.in_(sorted(toolchains())),
        again.error.in_(WRONG) if is_wrong else again.error.is_(None),
    )


def has_current(session: Session, job_id: UUID) -> bool:
    """Say whether a job has a trial that was made with today's code generator."""
    query = select(
        exists().where(TrialRow.job_id == job_id, TrialRow.toolchain.in_(sorted(toolchains())))
    )
    return bool(session.scalar(query))
