"""Measure whether final comparisons repeat, and whether users run what was measured.

Each workload is searched once. Then its final comparison is repeated with other seeds: two repeats
flip if they keep different schedules. A flip costs what the slower of the two loses, by the times
of all repeats. Fidelity is the time of the winner's kernel in this process, loaded from a file and
called with plain NumPy arrays, over its time in a child, in turns.

    python -m benchmarks.tuner.repeats --repeats 8
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.ir.interpret.inputs import random_inputs
from compiler.user_cache import default_directory
from service.coordinator.measurer import WorkerMeasurer
from tuner.finish.contest import Finish
from tuner.finish.finish import finish
from tuner.loop.tune import tune
from tuner.replay.base_model import base_model
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart
from workers.child.runner import ChildRunner

SPECS = (
    "matmul:256,256,256",
    "softmax:512,512",
    "conv2d:1,64,28,28,64,3,1,1",
    "depthwise_conv2d:1,64,56,56,3,1,1",
)
TARGET = "cpu -num-cores=1"
NUM_TRIALS = 64
NUM_ROUNDS = 6
"""Rounds of a child beside ten samples of the user, in turns."""


def main() -> None:
    """Search, repeat, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--spec", action="append", help="instead of all workloads")
    args, _ = parser.parse_known_args()
    metrics = []
    for spec in args.spec or SPECS:
        task = Task(lw.ops.from_spec(spec), lw.Target(TARGET))
        with ChildRunner() as runner:
            measurer = WorkerMeasurer(runner)
            start = WarmStart(base_model(default_directory()).model)
            found = tune(task, measurer=measurer, max_trials=NUM_TRIALS, warm_start=start)
            finals = [
                finish(task, found.trials, measurer, seed=seed) for seed in range(args.repeats)
            ]
            complete = [final for final in finals if final is not None and final.kept is not None]
            metrics += _flips(spec, complete)
            assert complete[0].kept is not None
            winner = complete[0].kept.trial
            metrics.append(_fidelity(task, winner, measurer, args.repeats))
    report("repeats", metrics)


def _flips(spec: str, finals: Sequence[Finish]) -> list[Metric]:
    """Return how often two comparisons keep different schedules, and what that costs."""
    secs: dict[int, list[float]] = {}
    for final in finals:
        for finalist in final.finalists:
            secs.setdefault(finalist.trial.number, []).append(finalist.run_secs)
    typical = {number: statistics.median(times) for number, times in secs.items()}
    kept = [final.kept.trial.number for final in finals if final.kept is not None]
    pairs = list(itertools.combinations(kept, 2))
    flips = 100 * sum(one != other for one, other in pairs) / len(pairs)
    costs = tuple(100 * (typical[number] / min(typical.values()) - 1) for number in kept)
    tied = 100 * sum(final.is_tied for final in finals) / len(finals)
    return [
        Metric(f"{spec}: pairs of repeats that flip", "%", (flips,)),
        Metric("  repeats with a tie", "%", (tied,)),
        Metric("  loss of the kept schedule", "%", costs),
    ]


def _fidelity(task: Task, winner: MeasuredTrial, measurer: WorkerMeasurer, num: int) -> Metric:
    """Return the time of a kernel in this process over that in a child."""
    schedule = winner.candidate.trace.apply_to(task.func)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel"
        lw.build(schedule, task.target).save(path)
        kernel = lw.Module.load(path)
    ratios = []
    for seed in range(num):
        rounds = measurer.compare(task, [winner.candidate], NUM_ROUNDS, seed)
        child_secs = statistics.median(measured.best_secs for (measured,) in rounds)
        inputs = random_inputs(task.func, seed)
        arrays = [
            inputs[param.name] if param.name in inputs else np.empty(param.shape, param.dtype)
            for param in kernel.params
        ]
        ratios.append(lw.time_evaluator(kernel, *arrays).min_secs / child_secs)
    return Metric("  time at the user over time in the child", "", tuple(ratios), goal="1 +- 0.03")


if __name__ == "__main__":
    main()
