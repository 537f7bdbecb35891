"""Compare what `lw.tune(max_secs=1)` finds with the best of 400 trials, side by side.

Each workload is tuned with a limit of a second in new processes (the start of the child and the
loading of the base model count; importing loopwright does not), again in the same processes with
another seed, and once with 400 trials. In the end all winners take turns in one child. A share of 1
means that the winner of a second is as fast as that of 400 trials. Under ten minutes on an idle
machine.

    python -m benchmarks.tuner.limited_time --seeds 3
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import loopwright as lw
from benchmarks.report import Metric, report
from benchmarks.tuner.trial_rate import compiled_once
from compiler.schedule.trace.trace import Trace
from service.coordinator.measurer import WorkerMeasurer
from tuner.candidate import Candidate
from tuner.task import Task
from workers.child.runner import ChildRunner

SPECS = (
    "matmul:512,512,512",
    "matmul:64,768,768",
    "softmax:512,512",
    "conv2d:1,64,28,28,64,3,1,1",
    "depthwise_conv2d:1,64,56,56,3,1,1",
)
MAX_SECS = 1.0
NUM_TRIALS = 400
NUM_ROUNDS = 30
_PROCESS = """
import json, sys, time
import loopwright as lw
spec, seed, max_secs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
lw.tune
for own_seed in (seed, 1000 + seed):
    start = time.perf_counter()
    found = lw.tune(spec, max_secs=max_secs, seed=own_seed, progress=False)
    secs = time.perf_counter() - start
    trace = json.loads(found.best.trace.to_text())
    print(json.dumps({"secs": secs, "num": len(found.trials), "trace": trace}))
"""


@dataclass(frozen=True)
class _Winner:
    """The winner of a call, the time of the call, and the number of trials."""

    secs: float
    num_trials: int
    trace: Trace


def main() -> None:
    """Search, compare, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--secs", type=float, default=MAX_SECS)
    parser.add_argument("--spec", action="append", help="instead of all workloads")
    args, _ = parser.parse_known_args()
    metrics = []
    with compiled_once():
        _limited("matmul:32,32,32", 0, args.secs)  # compiles the modules
        for spec in args.spec or SPECS:
            runs = [_limited(spec, seed, args.secs) for seed in range(args.seeds)]
            metrics += _compared(spec, [run[0] for run in runs], [run[1] for run in runs])
    for call in ("first", "second"):
        shares = [m for m in metrics if m.name.endswith(f"{call} call: share of the best")]
        means = [
            statistics.geometric_mean(s) for s in zip(*(m.samples for m in shares), strict=True)
        ]
        metrics.append(
            Metric(
                f"all, {call} call: mean share, at most 1 of each", "", tuple(means), goal=">= 0.97"
            )
        )
    report("limited_time", metrics)


def _limited(spec: str, seed: int, max_secs: float) -> list[_Winner]:
    """Tune twice in a new process."""
    command = [sys.executable, "-c", _PROCESS, spec, str(seed), str(max_secs)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    return [_Winner(a["secs"], a["num"], Trace.from_json(a["trace"])) for a in answers]


def _compared(spec: str, first: Sequence[_Winner], second: Sequence[_Winner]) -> list[Metric]:
    """Search with 400 trials, time all winners in turns, and report the shares."""
    found = lw.tune(spec, max_trials=NUM_TRIALS, progress=False)
    task = Task(found.func, found.target)
    winners = [Candidate("", winner.trace) for winner in (*first, *second)]
    best = Candidate("", found.best.trace)
    with ChildRunner() as runner:
        rounds = list(WorkerMeasurer(runner).compare(task, [best, *winners], NUM_ROUNDS, seed=0))
    shares = [
        statistics.median(measured[0].best_secs / measured[index].best_secs for measured in rounds)
        for index in range(1, len(winners) + 1)
    ]
    best_secs = statistics.median(measured[0].best_secs for measured in rounds)
    metrics = [Metric(f"{spec}, best of {NUM_TRIALS} trials", "ms", (1e3 * best_secs,))]
    for call, calls, own in (
        ("first", first, shares[: len(first)]),
        ("second", second, shares[len(first) :]),
    ):
        metrics += [
            Metric(f"{spec}, {call} call: share of the best", "", tuple(own), goal=">= 0.97"),
            Metric("  time of the call", "s", tuple(c.secs for c in calls)),
            Metric("  trials", "trials", tuple(float(c.num_trials) for c in calls)),
        ]
    return metrics


if __name__ == "__main__":
    main()
