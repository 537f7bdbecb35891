"""Begin a search with existing measurements."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tuner.candidate import Candidate
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import blend, boost
from tuner.cost_model.training import Measured, MeasuredTask, samples_of
from tuner.cost_model.xgboost_model import BASE_SAMPLES
from tuner.task import Task
from tuner.transfer.seed import BEST_OF_EACH, NUM_RELATIVES, Relative, refitted
from tuner.transfer.shape import distance, shape_of, target_distance
from tuner.warm_start import WarmStart


def warm_start_of(
    task: Task,
    measured_tasks: Sequence[MeasuredTask],
    *,
    seed: int = 0,
    rules: Collection[str] | None = None,
    base: bytes | None = None,
) -> WarmStart:
    """Return what measurements of other tasks bring to a task.

    The candidates are those of its nearest relatives, refitted; the cost model is trained on all
    tasks with the timing label of its target. Tasks for others are left aside.

    Args:
        seed: Of the training.
        rules: The names of the schedule rules that the search may use; None for all.
        base: A model of other measurements; new samples weigh more the more there are.
    """
    same_label = [
        measured_task
        for measured_task in measured_tasks
        if measured_task.task.target.timing_label == task.target.timing_label
    ]
    shape = shape_of(task.func)
    distances = [
        distance(shape, shape_of(measured_task.task.func))
        + target_distance(task.target, measured_task.task.target)
        for measured_task in same_label
    ]
    nearest = sorted(
        (task_distance, n)
        for n, task_distance in enumerate(distances)
        if math.isfinite(task_distance)
    )[:NUM_RELATIVES]
    relatives = [Relative(same_label[n].task, _best(same_label[n].measured)) for _, n in nearest]
    candidates = tuple(fit.candidate for fit in refitted(task, relatives, rules=rules))
    return WarmStart(_model(same_label, seed, base, task.target.kind), candidates)


def _best(measured: Sequence[Measured]) -> tuple[Candidate, ...]:
    correct = sorted((m for m in measured if math.isfinite(m.run_secs)), key=lambda m: m.run_secs)
    return tuple(measurement.candidate for measurement in correct[:BEST_OF_EACH])


def _model(
    measured_tasks: Sequence[MeasuredTask], seed: int, base: bytes | None, kind: str
) -> bytes | None:
    samples = [samples_of(task_samples)[0] for task_samples in measured_tasks]
    samples = [task_samples for task_samples in samples if len(task_samples.run_secs)]
    if not samples:
        return base
    members = boost(samples, seed)
    if base is not None:
        num = sum(len(task_samples.run_secs) for task_samples in samples)
        members = blend(stored_model.decode(base, kind), members, num / (num + BASE_SAMPLES))
    return stored_model.encode(members, kind)
