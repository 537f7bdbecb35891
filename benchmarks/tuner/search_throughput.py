"""Measure the candidates per second through features and cost model, on one core.

The model is trained on a few hundred rows with invented times, as many as a real search has. The
values of its predictions do not matter here.
"""

from __future__ import annotations

import time

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.tables.knob import Ints
from tuner.task import Task

BATCHES = (512, 16_384)
NUM_CANDIDATES = 16_384
NUM_MEASURED = 512
REPEATS = 5


TARGETS = ("cpu -num-cores=1", "cuda -gpu=h200")


def main() -> None:
    """Run the benchmark on the largest sketch of `matmul` 512x512x512, in batches of two sizes."""
    report("search_throughput", [metric for text in TARGETS for metric in _metrics(text)])


def _metrics(target_text: str) -> list[Metric]:
    task = Task(lw.ops.matmul(512, 512, 512), lw.Target(target_text))
    space = design_space(task)
    rng = np.random.default_rng(0)
    draws = [space.draw(sketch, BATCHES[-1], rng) for sketch in range(len(space.sketches))]
    sketch = max(range(len(draws)), key=lambda number: len(draws[number]))
    # A space may hold fewer points than a batch; repeated points cost the same.
    rows = np.resize(draws[sketch], (BATCHES[-1], draws[sketch].shape[1]))
    model = XGBoostModel(0, kind=task.target.kind)
    measured = space.features(sketch, rows[:NUM_MEASURED])
    start = time.process_time()
    model.update(Samples(task.key, measured, rng.uniform(1e-3, 1e-2, len(measured))))
    model.predict(measured)
    training_secs = time.process_time() - start
    kind = task.target.kind
    metrics = [Metric(f"{kind}: training on {len(measured)} rows", "s", (training_secs,))]
    for size in BATCHES:
        features, predictions, together = [], [], []
        for _ in range(REPEATS):
            first, second = _seconds(space, model, sketch, rows[:size])
            features.append(NUM_CANDIDATES / first)
            predictions.append(NUM_CANDIDATES / second)
            together.append(NUM_CANDIDATES / (first + second))
        name = f"{kind}: features and model, {size} a batch"
        metrics += [
            Metric(f"{kind}: features, {size} a batch", "/s", tuple(features)),
            Metric(f"{kind}: model, {size} a batch", "/s", tuple(predictions)),
            Metric(name, "/s", tuple(together), goal=">= 50,000"),
        ]
    return metrics


def _seconds(
    space: SketchSpace, model: XGBoostModel, sketch: int, rows: Ints
) -> tuple[float, float]:
    """Return the CPU seconds that features and predictions of all candidates take."""
    of_features = of_predictions = 0.0
    for _ in range(NUM_CANDIDATES // len(rows)):
        start = time.process_time()
        matrix = space.features(sketch, rows)
        middle = time.process_time()
        model.predict(matrix)
        of_features += middle - start
        of_predictions += time.process_time() - middle
    return of_features, of_predictions


if __name__ == "__main__":
    main()
