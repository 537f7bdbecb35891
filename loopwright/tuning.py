"""Tuning without a server: the search in this process, candidates in killable children."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.driver import build
from compiler.ir.program import PrimFunc
from compiler.runtime.measurement import Measurement
from compiler.runtime.module import Module
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace import Trace
from compiler.target import Target
from loopwright.errors import JobFailedError
from loopwright.models import MAX_TRIALS
from loopwright.progress import TrialProgress, format_ratio, format_secs
from loopwright.workload import WorkloadLike, to_func
from service.measurer import WorkerMeasurer
from tuner import trial as tuner_trial
from tuner import tune as tuner_tune
from tuner.task import Task
from workers.request import Limits
from workers.runner import ChildRunner


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured candidate, as a user sees it."""

    number: int
    sketch: str
    trace: Trace
    measurement: Measurement

    @property
    def run_secs(self) -> float:
        """Seconds of one run, the shortest sample; infinity if the candidate failed."""
        return self.measurement.best_secs


@dataclass(frozen=True, repr=False)
class TuneResult:
    """What tuning found; `trials` are in order, and trial 0 is the default schedule."""

    func: PrimFunc
    target: Target
    trials: tuple[Trial, ...]

    def __repr__(self) -> str:
        best, default = self.best.run_secs, self.default.run_secs
        return (
            f"<TuneResult of {self.func.name} on {self.target.name}: {len(self.trials)} trials,"
            f" best {format_secs(best)}, {format_ratio(default / best)} the default>"
        )

    @property
    def best(self) -> Trial:
        """The fastest trial that ran and was right; never slower than the default."""
        return min(self.trials, key=lambda trial: (trial.run_secs, trial.number))

    @property
    def default(self) -> Trial:
        """The trial of the default schedule."""
        return self.trials[0]

    def schedule(self) -> Schedule:
        """Return the program under the best schedule."""
        return self.best.trace.apply_to(self.func)

    def build(self, const_params: Mapping[str, Any] | None = None) -> Module:
        """Compile the program under the best schedule; see `loopwright.build`."""
        return build(self.schedule(), self.target, const_params)


def tune(
    workload: WorkloadLike,
    *,
    target: Target | str = "cpu",
    trials: int = 200,
    seed: int = 0,
    strategy: str = "evolutionary",
    progress: bool | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    limits: Limits | None = None,
) -> TuneResult:
    """Search for a fast schedule of a workload on this host.

    Every candidate is built, compared with the oracle and timed in a child process that may crash
    or hang without harm. A progress bar is drawn on a terminal. Ctrl-C ends the search; so does a
    program that raises in `on_trial`.

    Args:
        workload: A program, the text of a script, or an operator with its shape.
        trials: The budget; trial 0 is the default schedule.
        seed: The same seed and the same measurements give the same search.
        strategy: `"evolutionary"`, guided by a cost model, or `"random"`.
        progress: Whether to draw the bar; by default only where somebody looks.
        on_trial: Called with each trial as it is measured.
        limits: Deadlines and memory of a candidate.

    Raises:
        ScriptError: If the text of a script is wrong.
        OperatorError: If the operator is unknown.
        TargetError: If the target is unknown.
        ValueError: If `trials` or `strategy` is.
        JobFailedError: If not one trial, the default schedule included, ran and was right.
    """
    if trials not in range(1, MAX_TRIALS + 1):
        raise ValueError(f"trials is {trials!r}: expected a number from 1 to {MAX_TRIALS}")
    func = to_func(workload)
    where = target if isinstance(target, Target) else Target(target)
    task = Task(func, where)
    best_secs = default_secs = None
    num_measured = 0

    with (
        TrialProgress(func.name, trials, show=progress) as bar,
        ChildRunner(limits or Limits()) as runner,
    ):

        def see(measured: Sequence[tuner_trial.Trial]) -> None:
            nonlocal best_secs, default_secs, num_measured
            for trial in measured:
                num_measured += 1
                if trial.measurement.ok:
                    best_secs = min(trial.best_secs, best_secs or trial.best_secs)
                    default_secs = trial.best_secs if trial.number == 0 else default_secs
                if on_trial is not None:
                    on_trial(_seen(trial))
            bar.update(num_measured, best_secs, default_secs)

        found = tuner_tune.tune(
            task,
            measurer=WorkerMeasurer(runner),
            trials=trials,
            seed=seed,
            strategy=strategy,
            on_trials=see,
        )
    result = TuneResult(func, where, tuple(_seen(trial) for trial in found.trials))
    if not result.best.measurement.ok:
        default = result.default.measurement
        raise JobFailedError(
            f"none of {len(result.trials)} trials of {func.name} ran and was right;"
            f" the default schedule: {default.error}: {default.message}"
        )
    return result


def _seen(trial: tuner_trial.Trial) -> Trial:
    candidate = trial.candidate
    return Trial(trial.number, candidate.sketch, candidate.trace, trial.measurement)
