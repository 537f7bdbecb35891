"""Drive one job: search, then time the best side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from compiler.script.parser import parse
from compiler.target import Target
from service import warm_start
from service.owner import Owner
from service.store.database import Database
from service.store.jobs import JobRow
from service.store.sql_store import SqlStore
from service.store.workloads import WorkloadRow
from tuner.budget import StopReason
from tuner.finish.finish import Finish, finish
from tuner.measurer.comparer import Comparer
from tuner.measurer.measurer import Measurer
from tuner.task import Task
from tuner.tune import TuneResult, tune

_log = structlog.get_logger()

_LEAST_SECS = 1e-3


class Measuring(Measurer, Comparer, Protocol):
    """Measures candidates, and compares the best of them."""


@dataclass(frozen=True)
class Driven:
    """What came of a job: its search, and the finish if there was one."""

    result: TuneResult
    finish: Finish | None

    @property
    def stop_reason(self) -> StopReason:
        """Why the search ended."""
        return self.result.stop_reason


class Driver:
    """Runs the tuning loop on jobs that `owner` has claimed."""

    def __init__(self, database: Database, measuring: Measuring, owner: Owner) -> None:
        self._database = database
        self._measuring = measuring
        self._owner = owner
        self._store = SqlStore(database, owner)

    def drive(self, job: JobRow, should_stop: Callable[[], bool]) -> Driven | None:
        """Take a job from its last trial to its end.

        Returns:
            What came of it; None if `should_stop` ended it before.
        """
        task = self._task(job)
        job_id = str(job.id)
        try:
            result = tune(
                task,
                measurer=self._measuring,
                trials=job.trials,
                seconds=_seconds_left(job),
                plateau=job.plateau,
                seed=job.seed,
                strategy=job.strategy,
                rules=job.rules,
                warm_start=warm_start.begin(
                    self._database, self._owner, job, task, rules=job.rules
                ),
                history=self._store.trials(job_id),
                on_trials=lambda measured: self._store.add(job_id, task, measured),
                should_stop=should_stop,
            )
        except Exception as error:
            if not should_stop():
                raise
            # What was under way was interrupted: the job ends, or waits, as it is.
            _log.info("measuring was given up", job=job_id, reason=str(error))
            return None
        if result.stop_reason is StopReason.CANCELLED:
            return None
        found = self._finish(task, job, result, should_stop)
        return None if should_stop() else Driven(result, found)

    def _task(self, job: JobRow) -> Task:
        with self._database.read() as session:
            text = session.get_one(WorkloadRow, job.workload_key).script
        return Task(parse(text), Target(job.target))

    def _finish(
        self, task: Task, job: JobRow, result: TuneResult, should_stop: Callable[[], bool]
    ) -> Finish | None:
        try:
            return finish(
                task, result.trials, self._measuring, seed=job.seed, should_stop=should_stop
            )
        except Exception:
            # The search has its result: it is not lost because it could not be measured again.
            if not should_stop():
                _log.warning("the best could not be compared", job=str(job.id), exc_info=True)
            return None


def _seconds_left(job: JobRow) -> float | None:
    return None if job.seconds is None else max(job.seconds - job.active_secs, _LEAST_SECS)
