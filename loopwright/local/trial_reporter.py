"""What a user sees of a search while it runs: its trials, and a line of progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compiler.target.target import Target
from loopwright.client.progress import TrialProgress
from loopwright.local.tune_result import Trial
from service.wire.times import kind_of
from tuner import trial as tuner_trial
from tuner.finish.contest import Finalist
from tuner.task import Task


class TrialReporter:
    """Shows trials as they are measured: the weighted times of all tasks together.

    Attributes:
        num_measured: The number of trials so far.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        bar: TrialProgress,
        on_trial: Callable[[Trial], None] | None,
    ) -> None:
        self._tasks = tasks
        self._bar = bar
        self._on_trial = on_trial
        self.num_measured = 0
        self._best: dict[str, float] = {}
        self._default: dict[str, float] = {}

    def see(self, task: Task, measured: Sequence[tuner_trial.MeasuredTrial]) -> None:
        """Take new trials of a task."""
        for trial in measured:
            self.num_measured += 1
            if trial.measurement.ok:
                best_secs = self._best.get(task.key, trial.best_secs)
                self._best[task.key] = min(trial.best_secs, best_secs)
                if trial.number == 0:
                    self._default[task.key] = trial.best_secs
            if self._on_trial is not None:
                self._on_trial(public_trial(task.target, trial))
        best, default = self._sum(self._best), self._sum(self._default)
        ratio = default / best if default and best else None
        kind = kind_of(0.0, None, self._tasks[0].target.name)
        self._bar.update(self.num_measured, best, kind, ratio)

    def _sum(self, secs: Mapping[str, float]) -> float | None:
        if len(secs) < len(self._tasks):
            return None
        return sum(task.weight * secs[task.key] for task in self._tasks)


def public_trial(
    target: Target, trial: tuner_trial.MeasuredTrial, final: Finalist | None = None
) -> Trial:
    """Return a trial as users get it, with its part in the final comparison."""
    candidate = trial.candidate
    return Trial(trial.number, candidate.sketch, candidate.trace, trial.measurement, final, target)
