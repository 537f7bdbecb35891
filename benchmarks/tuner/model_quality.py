"""Measure how well the cost model ranks candidates of tasks outside its training, on records.

Each operator, one shape of every operator, or each family of operators is held out in turn. A model
trained on all other recorded sets, as the base model is, ranks it. See `docs/cost-model.md` for the
metrics.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import Metric, report
from tuner.cost_model.boosting import STORE_TREES, boost, score
from tuner.cost_model.cost_model import Samples, Scores
from tuner.cost_model.quality import mean_quality, quality
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import ROWS, packaged_samples, packaged_sets, thinned
from tuner.replay.recorded_set import RecordedSet
from tuner.space.features.features import FEATURE_NAMES

GOALS = {"pairwise": 0.85, "top1": 0.90, "top5": 0.96}
JOB_SAMPLES = 64
"""Samples of a job of a few rounds."""
LARGE = 40
"""Minimum candidates of a large set, or part of a set; results of large sets are shown separately.
"""
FAMILIES = {
    "products": "matmul dense batch_matmul mm_relu matmul_bias_relu linear_relu",
    "convolutions": "conv1d conv2d conv2d_nchwc conv2d_winograd conv2d_transpose conv3d"
    " depthwise_conv2d",
    "pools": "max_pool2d avg_pool2d",
    "attention": "attention",
    "rows": "softmax layer_norm row_sum",
}
PARTS = ("drawn", "kept")
"""Parts of a set: a uniform sample of all candidates, and those that pass the static filter."""


def main() -> None:
    """Evaluate the model on all recorded sets."""
    sets = packaged_sets()
    samples = [each.samples() for each in sets]
    family = {op: name for name, members in FAMILIES.items() for op in members.split()}
    operators = [s.operator for s in sets]
    groups: dict[str, list[object]] = {
        "operator": list(operators),
        "shape": [operators[:place].count(name) for place, name in enumerate(operators)],
        "family": [family[name] for name in operators],
    }
    metrics: list[Metric] = []
    for what, names in groups.items():
        start = time.process_time()
        scores = _held_out(samples, names)
        secs = time.process_time() - start
        metrics += _metrics(f"leave one {what} out", sets, samples, scores)
        metrics.append(Metric(f"leave one {what} out: training and judging", "s", (secs,)))
    estimate = FEATURE_NAMES.index("cycles.total")
    by_roofline = [-s.features[:, estimate].astype(np.float64) for s in samples]
    metrics += _metrics("roofline estimate, no model", sets, samples, by_roofline, is_model=False)
    for part in PARTS:
        agree = np.mean([s.provenance["repeatability"][part]["agreement"] for s in sets])
        metrics.append(Metric(f"{part}: two halves of the turns agree, mean", "", (float(agree),)))
    metrics += _training_costs(samples)
    report("model_quality", metrics)


def _held_out(samples: list[Samples], groups: list[object]) -> list[Scores]:
    """Return scores of all rows of all sets, of models that saw `ROWS` of each of the others."""
    found: dict[int, Scores] = {}
    known = [thinned(each, ROWS) for each in samples]
    for group in dict.fromkeys(groups):
        members = boost(
            [k for k, g in zip(known, groups, strict=True) if g != group], 0, STORE_TREES
        )
        for index, each in enumerate(samples):
            if groups[index] == group:
                found[index] = score(members, each.features)
    return [found[index] for index in range(len(samples))]


def _metrics(
    title: str,
    sets: tuple[RecordedSet, ...],
    samples: list[Samples],
    scores: list[Scores],
    *,
    is_model: bool = True,
) -> list[Metric]:
    """Return the mean of each measure on each part of the sets, and the figures a set."""
    metrics = []
    for part in PARTS:
        judged = []
        for recorded, own, guess in zip(sets, samples, scores, strict=True):
            mask = np.concatenate(recorded.is_drawn if part == "drawn" else recorded.is_kept)
            found = quality(guess[mask], own.run_secs[mask])
            if found is not None:
                judged.append((recorded, int(mask.sum()), found))
        for which, least in (("", 0), (f", of {LARGE} candidates or more", LARGE)):
            mean = mean_quality(q for _, num, q in judged if num >= least)
            assert mean is not None, "there are recorded sets"
            for name in ("pairwise", "top1", "top5", "trials_saved"):
                goal = f">= {GOALS[name]}" if is_model and name in GOALS else ""
                label = f"{title}, {part}{which}: {name}, mean"
                metrics.append(Metric(label, "", (getattr(mean, name),), goal=goal))
        for recorded, num, q in judged if is_model else ():
            text = f"{q.pairwise:.3f} / {q.top1:.3f} / {q.top5:.3f} of {num}"
            metrics.append(Metric(f"  {recorded.name}, {part}: {text}", "pairwise", (q.pairwise,)))
    return metrics


def _training_costs(samples: list[Samples]) -> list[Metric]:
    """Return the time to train the base model, and a model within a job."""
    start = time.process_time()
    base = packaged_samples()
    made = time.process_time()
    boost(base, 0, STORE_TREES)
    num = sum(len(s.run_secs) for s in base)
    metrics = [
        Metric(f"features of {num} samples", "s", (made - start,)),
        Metric(f"training on {num} samples", "s", (time.process_time() - made,)),
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
