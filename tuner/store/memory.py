"""A measurement store that lives as long as its process."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from tuner.store.store import DuplicateTrialError
from tuner.task import Task
from tuner.trial import MeasuredTrial, fastest


class MemoryStore:
    """Keeps trials in dictionaries; see `MeasurementStore`."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[int, MeasuredTrial]] = {}
        self._keys: dict[str, set[str]] = {}
        self._best: dict[str, MeasuredTrial] = {}
        self._lock = Lock()

    def add(self, job_id: str, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Keep trials of a job, all of them or none."""
        with self._lock:
            numbers = set(self._jobs.get(job_id, ()))
            keys = set(self._keys.get(job_id, ()))
            for trial in trials:
                if trial.number in numbers:
                    raise DuplicateTrialError(f"job {job_id} has a trial {trial.number} already")
                if trial.candidate.key in keys:
                    raise DuplicateTrialError(
                        f"job {job_id} has measured candidate {trial.candidate.key[:12]} already"
                    )
                numbers.add(trial.number)
                keys.add(trial.candidate.key)
            self._keys[job_id] = keys
            self._jobs.setdefault(job_id, {}).update({t.number: t for t in trials})
            self._renew_best(task.key, trials)

    def trials(self, job_id: str) -> list[MeasuredTrial]:
        """Return the trials of a job by their numbers; an unknown job has none."""
        with self._lock:
            return [trial for _, trial in sorted(self._jobs.get(job_id, {}).items())]

    def best(self, task_key: str) -> MeasuredTrial | None:
        """Return the fastest correct trial of a task over all jobs; the earliest of equals."""
        with self._lock:
            return self._best.get(task_key)

    def _renew_best(self, task_key: str, trials: Sequence[MeasuredTrial]) -> None:
        new, old = fastest(trials), self._best.get(task_key)
        if new is not None and (old is None or new.best_secs < old.best_secs):
            self._best[task_key] = new
