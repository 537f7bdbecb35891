"""The tuner's measurement store over SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from compiler.bounded_cache import BoundedCache
from compiler.runtime.conditions import TimingConditions
from compiler.runtime.measurement import STORED_FIELDS, Measurement
from compiler.runtime.resources import KernelResources
from service.common.owner import Owner
from service.store.database.database import Database
from service.store.results import best_schedules
from service.store.results.add_trials import NewTrials, add_all
from service.store.tasks import parse_candidate, parse_candidate_text
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from tuner.candidate import Candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial


class SqlStore:
    """Stores trials in a database; see `tuner.store.MeasurementStore`.

    The row of a job exists before its trials. The new trials, the job's counters, the best schedule
    of the task and the job's event change in one transaction.

    Args:
        owner: If given, `add` refuses (`LeaseLostError`) a job whose lease it does not hold.
    """

    def __init__(self, database: Database, owner: Owner | None = None) -> None:
        self._database = database
        self._owner = owner

    def add(self, job_id: str, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Store trials of a job, all of them or none."""
        if not trials:
            return
        new = NewTrials(UUID(job_id), self._owner, task, trials)
        with self._database.write() as session:
            [refusal] = add_all(session, [new], BoundedCache(1))
            if refusal is not None:
                raise refusal

    def trials(self, job_id: str) -> list[MeasuredTrial]:
        """Return the trials of a job by their numbers; an unknown job has none."""
        try:
            job_uuid = UUID(job_id)
        except ValueError:
            return []
        with self._database.read() as session:
            rows = trials.for_search(session, job_uuid)
        return [_trial(row, parse_candidate_text(row.sketch, row.trace)) for row in rows]

    def best(self, task_key: str) -> MeasuredTrial | None:
        """Return the fastest correct trial of a task over all jobs; the earliest of equals."""
        workload_key, _, target = task_key.partition("@")
        with self._database.read() as session:
            row = best_schedules.find(session, workload_key, target)
        if row is None:
            return None
        return _trial(row.trial, parse_candidate(row.trial.sketch, row.trial.trace))


def _trial(row: TrialRow | Row[Any], candidate: Candidate) -> MeasuredTrial:
    stored = {name: getattr(row, name) for name in STORED_FIELDS}
    stored["run_secs"] = tuple(row.run_secs)
    stored["resources"] = None if row.resources is None else KernelResources(**row.resources)
    conditions = row.conditions
    stored["conditions"] = None if conditions is None else TimingConditions.from_json(conditions)
    return MeasuredTrial(
        number=row.number,
        candidate=candidate,
        measurement=Measurement(**stored),
        predicted=row.predicted,
        round=row.round,
    )
