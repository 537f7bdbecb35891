"""Measure the trials per second on one core, everything included, and the time of each phase.

All processes share one core, so search and measuring take turns: through `lw.tune`, and through a
server. The times of building, checking and timing are from the trials. The finish is the time after
the last trial. "The rest" is the search, the start of a child, the oracle, communication between
processes, and in a server the store. A short job before them warms up the process. About a minute
in all on an idle machine; `--seeds 3` runs each job with three seeds.

With `--cores 2`, kernels are still for one core; the search and other children that build have the
second one, so that the shares can add up to more than the whole.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.runtime.measurement import Measurement
from examples.serving import serving
from service.wire.models import TrialRead

NUM_TRIALS = 200
TARGET = "cpu -num-cores=1"
WORKLOADS = (
    ("matmul 512^3", "matmul:512,512,512:float32"),
    ("conv2d 3x3 64x56x56", "conv2d:1,64,56,56,64,3,1,1:float32"),
)
_FIRST = "matmul:32,32,32:float32"


@dataclass(frozen=True)
class TrialRun:
    """One job: its wall time, the phases of its trials, and its finish, if it is known."""

    secs: float
    trials: tuple[Measurement | TrialRead, ...]
    finish_secs: float | None = None

    def share(self, *phases: str) -> float:
        """Return the share of phases in the wall time, in percent."""
        spent: float = sum(getattr(m, f"{phase}_secs") for m in self.trials for phase in phases)
        return 100 * spent / self.secs


def main(num_seeds: int = 1, num_cores: int = 1) -> None:
    """Run the benchmark: each workload in this process, and on a new server."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-num_cores:])
    metrics: list[Metric] = []
    with compiled_once():
        tuned_here(_FIRST, 0, num_trials=4)
        for name, workload in WORKLOADS:
            here = [tuned_here(workload, seed) for seed in range(num_seeds)]
            metrics += breakdown(f"{name}, lw.tune", here)
        for name, workload in WORKLOADS:
            there = [tuned_there(workload, seed) for seed in range(num_seeds)]
            metrics += breakdown(f"{name}, server", there)
    report("trial_rate", metrics)


@contextmanager
def compiled_once() -> Iterator[None]:
    """Enable bytecode caches in child processes, as an installed package has."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bytecode-") as directory:
        before = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        try:
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            if before is not None:
                os.environ["PYTHONDONTWRITEBYTECODE"] = before


def tuned_here(workload: str, seed: int, num_trials: int = NUM_TRIALS) -> TrialRun:
    """Tune in this process."""
    last = start = time.perf_counter()

    def see(_: object) -> None:
        nonlocal last
        last = time.perf_counter()

    found = lw.tune(
        workload, target=TARGET, max_trials=num_trials, seed=seed, progress=False, on_trial=see
    )
    end = time.perf_counter()
    return TrialRun(end - start, tuple(trial.measurement for trial in found.trials), end - last)


def tuned_there(workload: str, seed: int) -> TrialRun:
    """Tune on a new server; time the job from its start on a worker to its end."""
    with serving() as server, lw.Client(server.url) as client:
        client.tune(_FIRST, target=TARGET, max_trials=4).wait()
        handle = client.tune(workload, target=TARGET, max_trials=NUM_TRIALS, seed=seed)
        job = handle.wait()
        assert job.started_at is not None, job
        assert job.finished_at is not None, job
        secs = (job.finished_at - job.started_at).total_seconds()
        return TrialRun(secs, tuple(handle.trials()))


def breakdown(name: str, runs: Sequence[TrialRun]) -> list[Metric]:
    """Return the rate of some runs, and the shares of the phases in their wall time."""

    def share(what: str, *phases: str, goal: str = "") -> Metric:
        return Metric(f"  {what}", "%", tuple(run.share(*phases) for run in runs), goal=goal)

    finish = tuple(100 * (run.finish_secs or 0.0) / run.secs for run in runs)
    spent = [run.share("build", "check", "time") for run in runs]
    rest = tuple(100 - own - last for own, last in zip(spent, finish, strict=True))
    failed = tuple(float(sum(trial.error is not None for trial in run.trials)) for run in runs)
    rates = tuple(len(run.trials) / run.secs for run in runs)
    is_known = runs[0].finish_secs is not None
    return [
        Metric(name, "trials/s", rates, goal=">= 20"),
        share("build", "build"),
        share("check", "check"),
        share("time", "time"),
        share("build, check and time", "build", "check", "time", goal=">= 60"),
        *([Metric("  finish", "%", finish)] if is_known else []),
        Metric("  the rest" if is_known else "  finish and the rest", "%", rest),
        Metric("  trials that failed", "trials", failed),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="jobs of each workload (default 1)")
    parser.add_argument("--cores", type=int, default=1, help="cores for all (default 1)")
    args = parser.parse_args()
    main(args.seeds, args.cores)
