"""The measurements of `lw.compile` on this host: every trial is stored as soon as it is measured.

They are in a database of the service's format, `tuning.db` in `compiler.user_cache`. Each program
is a job of its own there, which all models share that contain the program. A call that was killed
continues from these trials, and so does a later call with more trials. `loopwright export` and
`loopwright train` read the database (`--db`).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from compiler.driver import toolchain
from compiler.ir.text.printer import script
from loopwright.errors import LoopwrightError
from service.common.errors import UnprocessableError
from service.common.new_workload import NewWorkload
from service.common.owner import Owner
from service.intake.workload_text import read_here
from service.store import targets, workloads
from service.store.database.base import utc_now
from service.store.database.database import Database, open_database
from service.store.jobs import idempotency, jobs, leases
from service.store.jobs.jobs import JobRow, NewJob
from service.store.results.sql_store import SqlStore
from service.wire.models import JobState
from service.wire.requests import Strategy, Workload
from tuner.loop.budget import StopReason
from tuner.task import Task
from tuner.trial import MeasuredTrial

FILE_NAME = "tuning.db"
_LEASE = timedelta(days=3650)
"""A lease of a process that still runs is not taken over; one of a dead process is, at once."""


class TuningRecords:
    """The stored trials of programs, each under the job of its task.

    Args:
        database: Where they are stored.
        identity: What decides the proposals of a search beside its task: other texts have other
            jobs.
    """

    def __init__(self, database: Database, identity: str) -> None:
        self._database = database
        self._identity = f"{toolchain()} {identity}"
        self._owner = Owner.here()
        self._store = SqlStore(database, self._owner)
        self._jobs: dict[str, UUID] = {}
        self._trials: dict[str, list[MeasuredTrial]] = {}

    def num_trials(self, task: Task) -> int:
        """Return the number of stored trials of a task."""
        with self._database.read() as session:
            job_id = self._find(session, task)
            return 0 if job_id is None else jobs.get(session, job_id).num_measured

    def trials(self, task: Task) -> Sequence[MeasuredTrial]:
        """Return the stored trials of a task, by number."""
        if task.key not in self._trials:
            with self._database.read() as session:
                job_id = self._find(session, task)
            self._trials[task.key] = [] if job_id is None else self._store.trials(str(job_id))
        return self._trials[task.key]

    def best(self, task: Task) -> MeasuredTrial | None:
        """Return the fastest stored trial of a task, of any search."""
        return self._store.best(task.key)

    @contextmanager
    def searching(self, tasks: Sequence[Task], max_trials: int, seed: int) -> Iterator[None]:
        """Hold the jobs of tasks, which are made if they are new, so that `add` may be called.

        Raises:
            LoopwrightError: If another process tunes one of them.
        """
        texts = {task.key: stored_form(task) for task in tasks}
        with self._database.write() as session:
            for task in tasks:
                workload = texts[task.key]
                assert workload is not None, f"{task.func.name} has no stored form"
                self._take(session, task, workload, max_trials, seed)
        try:
            yield
        except BaseException:
            self._leave(None)
            raise
        self._leave(StopReason.BUDGET)

    def add(self, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Store trials of a task whose job is held."""
        self._store.add(str(self._jobs[task.key]), task, trials)
        self._trials.pop(task.key, None)

    def _key(self, task: Task) -> str:
        return "compile " + hashlib.sha256(f"{self._identity} {task.key}".encode()).hexdigest()

    def _find(self, session: Session, task: Task) -> UUID | None:
        key = self._key(task)
        return idempotency.recall(session, None, key, _digest(key))

    def _take(
        self, session: Session, task: Task, workload: NewWorkload, max_trials: int, seed: int
    ) -> None:
        job_id = self._find(session, task)
        if job_id is None:
            workloads.ensure(session, workload)
            targets.ensure(session, task.target.name, task.target.label)
            row = jobs.submit(session, _new_job(task, workload, max_trials, seed))
            key = self._key(task)
            idempotency.remember(session, None, key, _digest(key), row.id)
        else:
            row = jobs.get(session, job_id, lock=True)
            if not leases.is_free(row, utc_now()):
                raise LoopwrightError(
                    f"process {Owner.parse(str(row.lease_owner)).pid} tunes {task.func.name} now:"
                    " wait for it, or compile with another seed"
                )
        self._hold(row, max_trials)
        self._jobs[task.key] = row.id

    def _hold(self, row: JobRow, max_trials: int) -> None:
        now = utc_now()
        row.state, row.error, row.stop_reason, row.finished_at = JobState.RUNNING, None, None, None
        row.max_trials = max(max_trials, row.num_measured)
        row.started_at, row.active_at = row.started_at or now, now
        row.lease_owner, row.lease_until = str(self._owner), now + _LEASE

    def _leave(self, reason: StopReason | None) -> None:
        """Return the jobs; with a reason, they have ended."""
        with self._database.write() as session:
            for job_id in self._jobs.values():
                row = leases.owned(session, job_id, str(self._owner))
                row.stop_reason = StopReason.CANCELLED if reason is None else reason
                leases.end(
                    session, row, JobState.CANCELLED if reason is None else JobState.SUCCEEDED, None
                )
        self._jobs.clear()


@contextmanager
def open_records(directory: Path, identity: str) -> Iterator[TuningRecords]:
    """Open the records of a directory; they are made if they do not exist.

    Raises:
        ServeError: If the file can't be used.
        LoopwrightError: If the directory can't be written, or no space is left.
    """
    file = directory.absolute() / FILE_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(file, error.strerror) from error
    try:
        with closing(open_database(f"sqlite:///{file.resolve()}")) as database:
            yield TuningRecords(database, identity)
    except (OperationalError, sqlite3.OperationalError) as error:
        raise _unwritable(file, getattr(error, "orig", error)) from error


def _unwritable(file: Path, reason: object) -> LoopwrightError:
    return LoopwrightError(
        f"trials can't be stored in {file}: {reason}; set LOOPWRIGHT_CACHE to a directory that can"
        " be written and has space"
    )


def stored_form(task: Task) -> NewWorkload | None:
    """Return a task's program as it is stored; None for one that is too large."""
    try:
        return read_here(Workload(script=script(task.func)))
    except (UnprocessableError, ValidationError):
        return None


def _new_job(task: Task, workload: NewWorkload, max_trials: int, seed: int) -> NewJob:
    return NewJob(
        workload_key=workload.key,
        workload_name=workload.name,
        target=task.target.name,
        max_trials=max_trials,
        seed=seed,
        strategy=Strategy.EVOLUTIONARY,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
