"""How well the cost model orders candidates of tasks that it was not told: no clock is involved.

On the recorded sets (`benchmarks/recorded/`), each operator or each set is held out in turn, and
ranked by a model of all the others. What is measured is told in `docs/cost-model.md`.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.report import Metric, report
from tuner.cost_model.boosting import STORE_TREES, boost
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.quality import MIN_RIGHT, Quality, held_out, mean_quality, quality
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.recorded_set import RecordedSet, read_sets
from tuner.space.features import FEATURE_NAMES

FOLDER = Path(__file__).parent / "recorded"
GOALS = {"pairwise": 0.85, "top1": 0.90, "top5": 0.96}
JOB_SAMPLES = 64
"""What a job of a few rounds has measured."""


def main() -> None:
    """Judge the model on all recorded sets."""
    sets = [each for each in read_sets(FOLDER) if len(each) >= MIN_RIGHT]
    samples = [each.samples() for each in sets]
    metrics: list[Metric] = []
    groups = {"operator": [s.operator for s in sets], "shape": [s.name for s in sets]}
    for what, names in groups.items():
        start = time.process_time()
        found = held_out(samples, names)
        secs = time.process_time() - start
        metrics += _metrics(f"leave one {what} out", sets, found)
        metrics.append(Metric(f"leave one {what} out: training and judging", "s", (secs,)))
    estimate = FEATURE_NAMES.index("cycles.total")
    by_roofline = [
        quality(-s.features[:, estimate].astype(np.float64), s.run_secs) for s in samples
    ]
    metrics += _metrics("roofline estimate, no model", sets, by_roofline, with_goals=False)
    metrics += _training_costs(samples)
    report("model_quality", metrics)


def _metrics(
    title: str, sets: list[RecordedSet], found: list[Quality | None], *, with_goals: bool = True
) -> list[Metric]:
    """Return the mean of each measure with the value of every set, and the figures a set."""
    judged = [(s, q) for s, q in zip(sets, found, strict=True) if q is not None]
    mean = mean_quality(q for _, q in judged)
    assert mean is not None, "there are recorded sets"
    metrics = []
    for name in ("pairwise", "top1", "top5", "trials_saved"):
        goal = f">= {GOALS[name]}" if with_goals and name in GOALS else ""
        metrics.append(Metric(f"{title}: {name}, mean", "", (getattr(mean, name),), goal=goal))
    if with_goals:
        for each, q in judged:
            values = (q.pairwise, q.top1, q.top5)
            text = " / ".join(f"{value:.3f}" for value in values)
            metrics.append(Metric(f"  {each.name}: {text}", "pairwise", (q.pairwise,)))
    return metrics


def _training_costs(samples: list[Samples]) -> list[Metric]:
    """Return what a training on everything costs, and one within a job."""
    start = time.process_time()
    boost(samples, 0, STORE_TREES)
    metrics = [
        Metric(
            f"training on {sum(len(s.run_secs) for s in samples)} samples",
            "s",
            (time.process_time() - start,),
        )
    ]
    largest = max(samples, key=lambda s: len(s.run_secs))
    num = min(JOB_SAMPLES, len(largest.run_secs))
    model = XGBoostModel(0)
    model.update(Samples(largest.task_key, largest.features[:num], largest.run_secs[:num]))
    start = time.process_time()
    model.predict(largest.features[:1])
    metrics.append(
        Metric(f"training on {num} samples of a job", "s", (time.process_time() - start,))
    )
    return metrics


if __name__ == "__main__":
    main()
