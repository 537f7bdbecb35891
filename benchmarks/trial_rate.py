"""Trials a second through a real server: propose, build, check, time and store."""

from __future__ import annotations

import loopwright as lw
from benchmarks.report import Metric, report
from examples.serving import serving

NUM_TRIALS = 128
REPEATS = 3


def main() -> None:
    """Run the benchmark: the same job with several seeds, each against a server of its own."""
    rates, failures = [], []
    for seed in range(REPEATS):
        with serving() as server, lw.Client(server.url) as client:
            handle = client.tune(
                "matmul:512,512,512:float32",
                target="cpu -num-cores=1",
                trials=NUM_TRIALS,
                seed=seed,
            )
            job = handle.wait()
            assert job.started_at is not None, job
            assert job.finished_at is not None, job
            secs = (job.finished_at - job.started_at).total_seconds()
            rates.append(job.num_measured / secs)
            failures.append(sum(trial.error is not None for trial in handle.trials()))
    report(
        "trial_rate",
        [
            Metric("matmul 512x512x512", "trials/s", tuple(rates), goal=">= 10"),
            Metric("trials that failed", "trials", tuple(float(n) for n in failures)),
        ],
    )


if __name__ == "__main__":
    main()
