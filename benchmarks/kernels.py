"""How fast tuned kernels are: against the default schedule, NumPy, and the FMA peak of a core."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.runtime.timing import Timing
from examples.cases import Case, cases
from loopwright.interleaved import time_interleaved

NUM_TRIALS = 200


def main() -> None:
    """Run the benchmark."""
    target = lw.Target("cpu -num-cores=1")
    metrics = []
    for case in cases():
        result = lw.tune(case.workload, target=target, trials=NUM_TRIALS, seed=0)
        timings = compare(case, result.build(), lw.build(case.func, target))
        # Measured beside the kernels: clocks change within minutes.
        peak = lw.fma_peak_gflops(target)
        flops = lw.flops(case.func)
        for name, timing in timings.items():
            rates = tuple(flops / secs / 1e9 for secs in timing.secs)
            metrics.append(Metric(f"{case.name}: {name}", "GFLOP/s", rates))
        shares = tuple(100 * flops / secs / 1e9 / peak for secs in timings["tuned"].secs)
        goal = ">= 60" if case.name.startswith("matmul") else ""
        metrics.append(Metric(f"{case.name}: share of peak", "%", shares, goal))
    report("kernels", metrics)


def compare(case: Case, tuned: lw.Module, default: lw.Module) -> dict[str, Timing]:
    """Time two kernels and NumPy in turns on the same inputs."""
    rng = np.random.default_rng(0)
    a, b, out = (rng.standard_normal(p.shape, dtype="float32") for p in tuned.params)
    return time_interleaved(
        {
            "default": default.bind(a, b, np.empty_like(out)),
            "tuned": tuned.bind(a, b, out),
            "NumPy": lambda: case.numpy(a, b),
        }
    )


if __name__ == "__main__":
    main()
