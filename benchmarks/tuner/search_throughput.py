"""Measure the candidates per second through features and cost model, on one core.

The model is trained on a few hundred rows with invented times, as many as a real search has. The
values of its predictions do not matter here. The rounds of a whole search follow, for CPUs.
"""

from __future__ import annotations

import time

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.runtime.measurement import Measurement
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.loop.search_loop import ROUND_SIZE
from tuner.replay.base_model import packaged_model
from tuner.search.make import make_strategy
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.tables.knob import Ints
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart

BATCHES = (512, 16_384)
NUM_CANDIDATES = 16_384
NUM_MEASURED = 512
REPEATS = 5
SEARCHED = ("matmul:512,512,512", "conv1d:1,64,512,64,3,1,1", "conv2d:1,64,56,56,64,3,1,1")
NUM_ROUNDS = 40
"""Of each search; the second half is reported, by when populations have grown."""

TARGETS = ("cpu -num-cores=1", "cuda -gpu=h200")


def main() -> None:
    """Run the benchmark on the largest sketch of `matmul` 512x512x512, in batches of two sizes."""
    metrics = [metric for text in TARGETS for metric in _metrics(text)]
    report("search_throughput", metrics + [_rounds(spec) for spec in SEARCHED])


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


def _rounds(spec: str) -> Metric:
    """Return the CPU time of rounds of a search that starts from the base model.

    Times of candidates are drawn, so that nothing is built. A round is told, and the next one is
    proposed.
    """
    task = Task(lw.ops.from_spec(spec), lw.Target("cpu -mcpu=znver5 -num-cores=1"))
    base = packaged_model()
    assert base is not None, "the package has its base model"
    search = make_strategy("evolutionary", task, 0, WarmStart(base.model))
    rng = np.random.default_rng(0)
    secs = []
    proposals = search.ask(ROUND_SIZE)
    for number in range(NUM_ROUNDS):
        start = time.process_time()
        search.tell(
            [
                MeasuredTrial(n, p.candidate, Measurement((rng.uniform(1e-3, 1e-2),)), p.predicted)
                for n, p in enumerate(proposals, number * ROUND_SIZE)
            ]
        )
        proposals = search.ask(ROUND_SIZE)
        secs.append(time.process_time() - start)
    return Metric(f"a round of {ROUND_SIZE} of {spec}", "s", tuple(secs[NUM_ROUNDS // 2 :]))


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
