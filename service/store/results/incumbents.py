"""Incumbents: the best schedules of some tasks, to which new trials are offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from service.store.database.base import utc_now
from service.store.results import toolchains
from service.store.results.best_schedules import BestScheduleRow, TaskKey
from service.wire.times import Interval, RunTime, holds_against
from tuner.trial import MeasuredTrial


@dataclass(frozen=True)
class Incumbent:
    """A best schedule as plain values: columns of its row, then facts of its trial."""

    job_id: UUID
    trial_number: int
    run_secs: float
    low_secs: float | None
    high_secs: float | None
    candidate_key: str
    toolchain: str
    provisional_secs: float | None

    @property
    def time(self) -> RunTime:
        """The time of its trial, with the provisional one."""
        interval: Interval | None = None
        if self.low_secs is not None and self.high_secs is not None:
            interval = self.low_secs, self.high_secs
        provisional_secs = self.run_secs if interval is None else self.provisional_secs
        if provisional_secs is None:
            provisional_secs = self.run_secs
        return RunTime(self.run_secs, interval, provisional_secs)


class Incumbents:
    """The best schedules of tasks, by their tasks, as far as they have one."""

    def __init__(self, by_task: Mapping[TaskKey, Incumbent]) -> None:
        self._by_task = dict(by_task)
        self._changed: set[TaskKey] = set()

    def key_of(self, task: TaskKey) -> str | None:
        """Return the key of the candidate that is the best of a task; None without one."""
        incumbent = self._by_task.get(task)
        return None if incumbent is None else incumbent.candidate_key

    def offer(self, task: TaskKey, job_id: UUID, trial: MeasuredTrial) -> None:
        """Make a trial the best of its task if it is faster than the current best.

        A time of the current code generator replaces that of an older one for the same candidate.
        A sample replaces a confirmed best only if it is far shorter: see `holds_against`.
        """
        measured = trial.measurement
        if not measured.ok:
            return
        incumbent = self._by_task.get(task)
        if (
            incumbent is not None
            and not _is_measured_again(incumbent, trial)
            and holds_against(incumbent.time, RunTime(trial.best_secs))
        ):
            return
        self._by_task[task] = Incumbent(
            job_id,
            trial.number,
            trial.best_secs,
            None,
            None,
            trial.candidate.key,
            measured.toolchain,
            trial.best_secs,
        )
        self._changed.add(task)

    def store(self, session: Session) -> None:
        """Store those that changed; their trials are stored already."""
        for task in sorted(self._changed):
            row = session.get(BestScheduleRow, task)
            if row is None:
                row = BestScheduleRow(workload_key=task[0], target=task[1])
                session.add(row)
            best = self._by_task[task]
            row.job_id, row.trial_number = best.job_id, best.trial_number
            row.run_secs, row.low_secs, row.high_secs = best.run_secs, best.low_secs, best.high_secs
            row.updated_at = utc_now()
        self._changed.clear()
        session.flush()


def _is_measured_again(incumbent: Incumbent, trial: MeasuredTrial) -> bool:
    return (
        incumbent.candidate_key == trial.candidate.key
        and toolchains.is_outdated(incumbent.toolchain)
        and not toolchains.is_outdated(trial.measurement.toolchain)
    )
