"""Begin a search with measurements that are at hand."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tuner.candidate import Candidate
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import STORE_TREES, blend, boost
from tuner.cost_model.training import Measured, MeasuredTask, samples_of
from tuner.cost_model.xgboost_model import BASE_SAMPLES
from tuner.task import Task
from tuner.transfer.seed import BEST_OF_EACH, NUM_RELATIVES, Relative, refitted
from tuner.transfer.shape import distance, shape_of, target_distance
from tuner.warm_start import WarmStart


def warm_start_of(
    task: Task,
    known: Sequence[MeasuredTask],
    *,
    seed: int = 0,
    rules: Collection[str] | None = None,
    base: bytes | None = None,
) -> WarmStart:
    """Return what measurements of other tasks bring to a task.

    The candidates are those of its nearest relatives, refitted; the cost model is trained on all
    tasks that are for the same kind of CPU. Tasks for others are left aside.

    Args:
        seed: Of the training.
        rules: The names of the schedule rules that the search may use; None for all.
        base: A model of other measurements; new samples weigh more the more there are.
    """
    alike = [each for each in known if each.task.target.label == task.target.label]
    shape = shape_of(task.func)
    apart = [
        distance(shape, shape_of(each.task.func)) + target_distance(task.target, each.task.target)
        for each in alike
    ]
    near = sorted((far, n) for n, far in enumerate(apart) if math.isfinite(far))[:NUM_RELATIVES]
    relatives = [Relative(alike[n].task, _best(alike[n].measured)) for _, n in near]
    candidates = tuple(fit.candidate for fit in refitted(task, relatives, rules=rules))
    return WarmStart(_model(alike, seed, base, task.target.kind), candidates)


def _best(measured: Sequence[Measured]) -> tuple[Candidate, ...]:
    right = sorted((m for m in measured if math.isfinite(m.run_secs)), key=lambda m: m.run_secs)
    return tuple(each.candidate for each in right[:BEST_OF_EACH])


def _model(known: Sequence[MeasuredTask], seed: int, base: bytes | None, kind: str) -> bytes | None:
    samples = [samples_of(each)[0] for each in known]
    samples = [each for each in samples if len(each.run_secs)]
    if not samples:
        return base
    own = boost(samples, seed, STORE_TREES)
    if base is not None:
        num = sum(len(each.run_secs) for each in samples)
        own = blend(stored_model.decode(base, kind), own, num / (num + BASE_SAMPLES))
    return stored_model.encode(own, kind)
