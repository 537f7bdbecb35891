"""Measure the benefit of the base model in the first trials of a search.

Each workload is searched with several seeds, with and without the base model, in turns. The result
is the speed of the best of the first few trials, as a share of the best of all searches. The base
model is trained on other shapes of both operators, not on these.

    python -m benchmarks.tuner.first_trials --seeds 3
"""

from __future__ import annotations

import argparse

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.user_cache import default_directory
from service.coordinator.measurer import WorkerMeasurer
from tuner.loop.tune import tune
from tuner.replay.base_model import base_model
from tuner.task import Task
from tuner.warm_start import COLD, WarmStart
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureLimits

SPECS = ("matmul:512,512,512", "conv2d:1,64,56,56,64,3,1,1")
TARGET = "cpu -num-cores=1"
TRIALS = 50
FIRST = (5, 16, 32, 50)


def main() -> None:
    """Search, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("specs", nargs="*", default=SPECS)
    args = parser.parse_args()
    begun = {"from nothing": COLD, "base": WarmStart(base_model(default_directory()).model)}
    metrics = []
    for spec in args.specs:
        found: dict[str, list[list[float]]] = {name: [] for name in begun}
        for seed in range(args.seeds):
            for name, warm_start in begun.items():
                found[name].append(_times(spec, seed, warm_start))
        best = min(secs for runs in found.values() for own in runs for secs in own)
        for num in FIRST:
            for name, runs in found.items():
                shares = tuple(best / min(own[:num]) for own in runs)
                metrics.append(Metric(f"{spec}, {name}: best of {num} trials", "", shares))
    report("first_trials", metrics)


def _times(spec: str, seed: int, warm_start: WarmStart) -> list[float]:
    """Return the times of the trials of a search in seconds, in order."""
    task = Task(lw.ops.from_spec(spec), lw.Target(TARGET))
    with ChildRunner(MeasureLimits()) as runner:
        found = tune(
            task,
            measurer=WorkerMeasurer(runner),
            max_trials=TRIALS,
            seed=seed,
            warm_start=warm_start,
        )
    return [trial.best_secs for trial in found.trials]


if __name__ == "__main__":
    main()
