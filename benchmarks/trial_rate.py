"""Trials a second on one core, and where their time goes: through `lw.tune` and through a server.

All processes share one core, so search and measuring take turns. Building, checking and timing are
what the trials themselves say; "the rest" is the search, the hand-over between processes, and in a
server the store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.runtime.measurement import Measurement
from examples.serving import serving
from loopwright.models import TrialRead

NUM_TRIALS = 128
SEEDS = (0, 1, 2)
TARGET = "cpu -num-cores=1"
WORKLOADS = (
    ("matmul 512^3", "matmul:512,512,512:float32"),
    ("conv2d 3x3 64x56x56", "conv2d:1,64,56,56,64,3,1,1:float32"),
)


@dataclass(frozen=True)
class Run:
    """One job: its wall time, and what its trials spent."""

    secs: float
    trials: tuple[Measurement | TrialRead, ...]

    def share(self, *phases: str) -> float:
        """Return how much of the wall time phases took, in percent."""
        spent: float = sum(getattr(m, f"{phase}_secs") for m in self.trials for phase in phases)
        return 100 * spent / self.secs


def main() -> None:
    """Run the benchmark: the same jobs with several seeds, each against a server of its own."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    metrics: list[Metric] = []
    for name, workload in WORKLOADS:
        metrics += breakdown(f"{name}, lw.tune", [tuned_here(workload, seed) for seed in SEEDS])
        metrics += breakdown(f"{name}, server", [tuned_there(workload, seed) for seed in SEEDS])
    report("trial_rate", metrics)


def tuned_here(workload: str, seed: int) -> Run:
    """Tune in this process."""
    start = time.perf_counter()
    found = lw.tune(workload, target=TARGET, trials=NUM_TRIALS, seed=seed, progress=False)
    secs = time.perf_counter() - start
    return Run(secs, tuple(trial.measurement for trial in found.trials))


def tuned_there(workload: str, seed: int) -> Run:
    """Tune on a server of one's own, from when a worker takes the job until it ends."""
    with serving() as server, lw.Client(server.url) as client:
        handle = client.tune(workload, target=TARGET, trials=NUM_TRIALS, seed=seed)
        job = handle.wait()
        assert job.started_at is not None, job
        assert job.finished_at is not None, job
        secs = (job.finished_at - job.started_at).total_seconds()
        return Run(secs, tuple(handle.trials()))


def breakdown(name: str, runs: Iterable[Run]) -> list[Metric]:
    """Return the rate of some runs, and the shares of what their wall time went into."""
    runs = tuple(runs)

    def share(what: str, *phases: str, goal: str = "") -> Metric:
        return Metric(f"  {what}", "%", tuple(run.share(*phases) for run in runs), goal=goal)

    rest = tuple(100 - run.share("build", "check", "time") for run in runs)
    failed = tuple(float(sum(trial.error is not None for trial in run.trials)) for run in runs)
    rates = tuple(len(run.trials) / run.secs for run in runs)
    return [
        Metric(name, "trials/s", rates, goal=">= 20"),
        share("build", "build"),
        share("check", "check"),
        share("time", "time"),
        share("build, check and time", "build", "check", "time", goal=">= 60"),
        Metric("  the rest", "%", rest),
        Metric("  trials that failed", "trials", failed),
    ]


if __name__ == "__main__":
    main()
