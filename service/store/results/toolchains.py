"""Find measurements that were made with another code generator than this process has.

Such a time does not apply to a kernel that is compiled now. The row is kept, and marked in every
answer. A new measurement of the same candidate replaces it.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from compiler.backends.backend import BACKENDS
from compiler.driver import toolchain, toolchains
from compiler.runtime.measurement import ErrorKind
from service.store.jobs.jobs import JobRow
from service.store.trials.trials import TrialRow

# A candidate with this error is wrong now; other failures may come from the host.
WRONG = (ErrorKind.BUILD_ERROR, ErrorKind.WRONG_RESULT, ErrorKind.CRASH)
_UNKNOWN = ""


def is_outdated(made_by: str) -> bool:
    """Return whether a measurement was made with another code generator than the current one."""
    # Kind by kind: most are of the first one, and a look-up need not import the others.
    return made_by != _UNKNOWN and all(made_by != toolchain(kind) for kind in BACKENDS.kinds)


def is_old(made_by: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    """Return `is_outdated` as a condition on a column."""
    return made_by.not_in(sorted({_UNKNOWN, *toolchains()}))


def measured_today(workload_key: str, target: str, *, is_wrong: bool) -> ColumnElement[bool]:
    """Return the condition that the current generator compiled the selected `TrialRow`'s candidate.

    Args:
        workload_key: The workload of the task.
        target: Its target.
        is_wrong: Whether the kernel was wrong; if False, it ran and was correct.
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
    """Return whether a job has a trial of the current code generator."""
    query = select(
        exists().where(TrialRow.job_id == job_id, TrialRow.toolchain.in_(sorted(toolchains())))
    )
    return bool(session.scalar(query))
