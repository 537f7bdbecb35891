"""Measure the first trials of an unseen shape, after the operator's other shapes were tuned.

Each shape is first tuned alone, without a warm start. Then each is searched for a few trials, with
the best schedules of the other shapes and a cost model trained on them. The best of these trials,
of as many cold trials, and of the whole search are timed in turns. 100% is the speed of the best of
the whole search.

Measurements are stored in `benchmarks/results/warm_start`, a file for each shape. So an interrupted
run continues; delete the folder to start again.

    python -m benchmarks.tuner.warm_start  # 14 shapes, 400 trials each
    python -m benchmarks.tuner.warm_start --operators matmul --shapes 3 --trials 64
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.report import Metric, report
from compiler.driver import toolchain
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from service.coordinator.measurer import WorkerMeasurer
from tuner.candidate import Candidate
from tuner.cost_model.training import Measured, MeasuredTask
from tuner.loop.tune import tune
from tuner.task import Task
from tuner.transfer.from_measurements import warm_start_of
from tuner.trial import MeasuredTrial
from tuner.warm_start import COLD, WarmStart
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureLimits

TARGET = "cpu -num-cores=1"
SHAPES = {
    "matmul": (
        *("matmul:512,512,512", "matmul:1024,256,512", "matmul:128,768,768"),
        *("matmul:384,384,1536", "matmul:197,512,320", "matmul:64,1024,1024"),
    ),
    "conv2d": (
        *("conv2d:1,64,56,56,64,3,1,1", "conv2d:1,128,28,28,128,3,1,1"),
        *("conv2d:1,256,14,14,256,3,1,1", "conv2d:1,512,7,7,512,3,1,1"),
    ),
    "softmax": ("softmax:1024,1024", "softmax:256,4096", "softmax:2048,200", "softmax:4096,64"),
}
NUM_FIRST = 16
NUM_FINALISTS = 2
"""The fastest candidates of a search by first timing; the better of them counts."""
ROUNDS = 11


def main(arguments: Sequence[str] = ()) -> None:
    """Run the missing searches, and show all results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--operators", default=",".join(SHAPES), help="separated by commas")
    parser.add_argument("--shapes", type=int, default=100, help="how many of each operator")
    parser.add_argument("--trials", type=int, default=400, help="of a whole search")
    args = parser.parse_args(arguments)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    chosen = {
        name: [s for n, s in enumerate(SHAPES[name]) if n < args.shapes]
        for name in args.operators.split(",")
    }
    metrics: list[Metric] = []
    with ChildRunner(MeasureLimits()) as runner:
        bench = WarmStartRun(WorkerMeasurer(runner), args.trials)
        for specs in chosen.values():
            for spec in specs:
                bench.whole(spec)
            for spec in specs:
                metrics += bench.left_out(spec, [other for other in specs if other != spec])
    report("warm_start", [*_medians(metrics), *metrics])


@dataclass(frozen=True)
class WarmStartRun:
    """Searches shapes, and stores the results."""

    measurer: WorkerMeasurer
    num_trials: int

    @property
    def folder(self) -> Path:
        """The folder of searches with as many trials and this version of the compiler."""
        version = toolchain().replace("/", "-").replace(" ", "_")
        return RESULTS / "warm_start" / f"{self.num_trials}-{version}"

    def whole(self, spec: str) -> list[MeasuredTrial]:
        """Return the trials of a whole search without a warm start."""
        return self._searched(spec, "whole", self.num_trials, COLD)

    def left_out(self, spec: str, others: Sequence[str]) -> list[Metric]:
        """Return the relative speed after the first trials of a shape, warm and cold."""
        whole = self.whole(spec)
        first = self._searched(spec, "first", NUM_FIRST, self._warm_start(spec, others))
        path = self.folder / f"{_file(spec)}-shares.json"
        if not path.exists():
            groups = [_fastest(t, NUM_FINALISTS) for t in (whole, first, whole[:NUM_FIRST])]
            secs = self._side_by_side(_task(spec), groups)
            path.write_text(json.dumps([100 * secs[0] / each for each in secs[1:]]))
        warm, cold = json.loads(path.read_text())
        return [
            Metric(f"{spec}, warm", "%", (warm,), goal=">= 90"),
            Metric(f"{spec}, cold", "%", (cold,)),
        ]

    def _warm_start(self, spec: str, others: Sequence[str]) -> WarmStart:
        known = [
            MeasuredTask(
                _task(other), [Measured(t.candidate, t.best_secs) for t in self.whole(other)]
            )
            for other in others
        ]
        return warm_start_of(_task(spec), known)

    def _searched(
        self, spec: str, name: str, num: int, warm_start: WarmStart
    ) -> list[MeasuredTrial]:
        path = self.folder / f"{_file(spec)}-{name}.json"
        if not path.exists():
            print(f"{spec}: {name}, {num} trials", flush=True)
            found = tune(_task(spec), measurer=self.measurer, max_trials=num, warm_start=warm_start)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps([_written(t) for t in found.trials]))
        return [_read(kept) for kept in json.loads(path.read_text())]

    def _side_by_side(self, task: Task, groups: Sequence[Sequence[Candidate]]) -> list[float]:
        """Return the time of the fastest candidate of each group."""
        every = list({c.key: c for group in groups for c in group}.values())
        rounds = list(self.measurer.compare(task, every, ROUNDS, seed=0))
        secs = {
            candidate.key: statistics.median(each[n].best_secs for each in rounds)
            for n, candidate in enumerate(every)
        }
        return [min(secs[c.key] for c in group) for group in groups]


def _task(spec: str) -> Task:
    return Task(from_spec(spec), Target(TARGET))


def _fastest(trials: Sequence[MeasuredTrial], num: int) -> list[Candidate]:
    right = sorted((t for t in trials if t.measurement.ok), key=lambda t: t.best_secs)
    return [trial.candidate for trial in right[:num]]


def _file(spec: str) -> str:
    return spec.replace(":", "_").replace(",", "x")


def _written(trial: MeasuredTrial) -> dict[str, Any]:
    found = trial.measurement
    return {
        "number": trial.number,
        "sketch": trial.candidate.sketch,
        "trace": trial.candidate.trace.to_json(),
        "run_secs": found.run_secs,
        "error": found.error,
    }


def _read(kept: dict[str, Any]) -> MeasuredTrial:
    candidate = Candidate(kept["sketch"], Trace.from_json(kept["trace"]))
    measurement = Measurement(tuple(kept["run_secs"]), error=kept["error"])
    return MeasuredTrial(kept["number"], candidate, measurement)


def _medians(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the medians over all shapes."""
    found = []
    for name, goal in (("warm", ">= 90"), ("cold", "")):
        samples = tuple(m.samples[0] for m in metrics if m.name.endswith(name))
        title = f"first {NUM_FIRST} trials, {name}: share of the speed of the whole search"
        found.append(Metric(title, "%", samples, goal=goal))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
