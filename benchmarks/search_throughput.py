"""How many candidates a second go through features and cost model, on one core.

The model is trained on a few hundred rows with invented times: what it learns does not matter
here, and a real search has as many.
"""

from __future__ import annotations

import time

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.generate import design_space
from tuner.task import Task

NUM_CANDIDATES = 20_000
NUM_MEASURED = 512
REPEATS = 5


def main() -> None:
    """Run the benchmark on the largest sketch of `matmul` 512x512x512."""
    task = Task(lw.ops.matmul(512, 512, 512), lw.Target("cpu -num-cores=1"))
    space = design_space(task)
    rng = np.random.default_rng(0)
    draws = [space.draw(sketch, NUM_CANDIDATES, rng) for sketch in range(len(space.sketches))]
    sketch = max(range(len(draws)), key=lambda number: len(draws[number]))
    rows = draws[sketch]
    model = XGBoostModel(0)
    measured = space.features(sketch, rows[:NUM_MEASURED])
    start = time.process_time()
    model.update(Samples(task.key, measured, rng.uniform(1e-3, 1e-2, len(measured))))
    model.predict(measured)
    training_secs = time.process_time() - start
    features, predictions, together = [], [], []
    for _ in range(REPEATS):
        start = time.process_time()
        matrix = space.features(sketch, rows)
        middle = time.process_time()
        model.predict(matrix)
        end = time.process_time()
        features.append(len(rows) / (middle - start))
        predictions.append(len(rows) / (end - middle))
        together.append(len(rows) / (end - start))
    report(
        "search_throughput",
        [
            Metric("features", "/s", tuple(features)),
            Metric("model", "/s", tuple(predictions)),
            Metric("features and model", "/s", tuple(together), goal=">= 20,000"),
            Metric(f"training on {len(measured)} rows", "s", (training_secs,)),
        ],
    )


if __name__ == "__main__":
    main()
