"""The search of a model: its programs share the trials by what each is expected to gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.driver import toolchain
from loopwright.models.records import TuningRecords, stored_form
from service.wire.requests import MAX_TASKS
from service.wire.trial_limit import MAX_TRIALS
from tuner.candidate import Candidate
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.tune import tune_tasks
from tuner.measurer.measurer import Measurer
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart

MIN_SHARE = 0.005
"""A program with a smaller share of the model's time keeps its first proposal: twice as fast, it
would gain less than the noise of a measurement. Chosen.
"""
PLATEAU = 64
"""Without a limit on trials, the search of a program ends once so many in a row shortened its time
by less than `tuner.loop.budget.PLATEAU_GAIN`: four rounds. Chosen.
"""
NUM_ALTERNATIVES = 2
"""Schedules of a program that the final comparison tries beside its first proposal. Each takes the
time and the memory of a further model. Chosen.
"""


@dataclass(frozen=True)
class TimedProgram:
    """A program of a model.

    Attributes:
        task: The task; its weight is the number of calls in a run of the model.
        first: Its first proposal.
        secs: The time of all its calls in a run under that schedule, in seconds.
    """

    task: Task
    first: Candidate
    secs: float


def worth_tuning(
    programs: Sequence[TimedProgram], max_trials: int | None, num_trials: Callable[[Task], int]
) -> list[TimedProgram]:
    """Return the programs to tune, in the order of the model.

    Programs that have trials come first, so that a search which is resumed has the same programs;
    then those with the largest share of the model's time.

    Args:
        programs: The programs of a model.
        max_trials: The limit on the trials of all together; each program needs a round of them.
        num_trials: Returns the number of trials of a task so far.
    """
    total_secs = sum(program.secs for program in programs)
    begun = {id(program) for program in programs if num_trials(program.task)}
    large = [p for p in programs if id(p) in begun or p.secs >= MIN_SHARE * total_secs]
    storable = [program for program in large if stored_form(program.task) is not None]
    limit = MAX_TASKS if max_trials is None else min(MAX_TASKS, max(1, max_trials // ROUND_SIZE))
    chosen = sorted(storable, key=lambda p: (id(p) not in begun, -p.secs))[:limit]
    return [program for program in programs if program in chosen]


def search_model(
    programs: Sequence[TimedProgram],
    measurer: Measurer,
    records: TuningRecords,
    *,
    max_trials: int | None,
    seed: int,
    cost_model: bytes | None,
    on_progress: Callable[[int, float], None],
) -> None:
    """Measure schedules of programs until the trials are spent; all are in the records then.

    Args:
        programs: The programs to tune.
        measurer: Measures candidates.
        records: The trials so far; none of them is measured again.
        max_trials: The limit on the trials of all together, counted with those of the records;
            with None, the search of each program ends on a plateau.
        seed: Of the search.
        cost_model: The stored model that the searches begin with, if there is one.
        on_progress: Called with the number of trials and the projected time of the programs in
            seconds, as trials arrive.
    """
    tasks = [program.task for program in programs]
    history = {task.key: records.trials(task) for task in tasks}
    seen = _Projection(programs, on_progress)
    for task in tasks:
        seen.add(task, history[task.key])

    def on_trials(task: Task, trials: Sequence[MeasuredTrial]) -> None:
        records.add(task, trials)
        seen.add(task, trials)

    limit = MAX_TRIALS if max_trials is None else max_trials
    if not programs or sum(map(len, history.values())) >= limit:
        return
    with records.searching(tasks, limit, seed):
        tune_tasks(
            tasks,
            measurer=measurer,
            max_trials=limit,
            plateau=PLATEAU if max_trials is None else None,
            seed=seed,
            warm_starts={p.task.key: _warm_start(p, cost_model) for p in programs},
            history=history,
            on_trials=on_trials,
        )


def alternatives(program: TimedProgram, records: TuningRecords) -> list[Candidate]:
    """Return the schedules that the final comparison tries beside the first proposal."""
    trials = list(records.trials(program.task))
    if (best := records.best(program.task)) is not None:
        trials.append(best)
    today = toolchain()
    current = [t for t in trials if t.measurement.ok and t.measurement.toolchain == today]
    current.sort(key=lambda trial: (trial.best_secs, trial.number))
    by_key = {trial.candidate.key: trial.candidate for trial in current}
    by_key.pop(program.first.key, None)
    return list(by_key.values())[:NUM_ALTERNATIVES]


def _warm_start(program: TimedProgram, cost_model: bytes | None) -> WarmStart:
    # The default schedule is trial 0 in any case.
    is_proposed = bool(program.first.trace.instructions)
    return WarmStart(cost_model, (program.first,) if is_proposed else ())


class _Projection:
    """The projected time of programs: that of the first proposals, less what trials gained.

    A trial is timed alone, with warm caches. So the time in the model is multiplied by the ratio of
    two trials, that of the best schedule and that of the first proposal.
    """

    def __init__(
        self, programs: Sequence[TimedProgram], on_progress: Callable[[int, float], None]
    ) -> None:
        self._programs = {program.task.key: program for program in programs}
        self._on_progress = on_progress
        self._best: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._num_measured = 0

    def add(self, task: Task, trials: Sequence[MeasuredTrial]) -> None:
        """Take new trials of a task."""
        first_key = self._programs[task.key].first.key
        for trial in trials:
            self._num_measured += 1
            if trial.candidate.key == first_key:
                self._first[task.key] = trial.best_secs
            best_secs = self._best.get(task.key, math.inf)
            self._best[task.key] = min(best_secs, trial.best_secs)
        if trials:
            self._on_progress(self._num_measured, self._secs())

    def _secs(self) -> float:
        return sum(
            program.secs * _ratio(self._best.get(key), self._first.get(key))
            for key, program in self._programs.items()
        )


def _ratio(best_secs: float | None, first_secs: float | None) -> float:
    if best_secs is None or first_secs is None or not math.isfinite(first_secs):
        return 1.0
    return min(1.0, best_secs / first_secs)
