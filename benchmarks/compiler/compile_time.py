"""Measure the time from trace to object code, for random candidates of several workloads."""

from __future__ import annotations

import time

import loopwright as lw
from benchmarks.kernels.traces import program
from benchmarks.report import Metric, report
from benchmarks.workloads.table import BY_NAME
from benchmarks.workloads.workload import BenchmarkWorkload
from compiler.driver import compile_kernel
from compiler.schedule.error import ScheduleError
from tuner.search.make import make_strategy
from tuner.task import Task

NUM_CANDIDATES = 32
NAMES = (
    "matmul_512x512x512",
    "conv2d_64x56x56_64_3x3",
    "conv2d_3x224x224_64_7x7s2",
    "depthwise_96x112x112_3x3s2",
    "attention_12x128x64",
    "layer_norm_1024x768",
    "softmax_1024x1024",
)


def main() -> None:
    """Run the benchmark, on one core."""
    metrics, all_replays, all_compiled = [], [], []
    for name in NAMES:
        replays, compiled = candidates(BY_NAME[name])
        both = tuple(a + b for a, b in zip(replays, compiled, strict=True))
        metrics.append(Metric(name, "ms", both))
        all_replays += replays
        all_compiled += compiled
    both = tuple(a + b for a, b in zip(all_replays, all_compiled, strict=True))
    metrics += [
        Metric("all: replay the trace", "ms", tuple(all_replays)),
        Metric("all: lower, generate, compile", "ms", tuple(all_compiled), goal="<= 20"),
        Metric("all: a candidate", "ms", both),
    ]
    report("compile_time", metrics)


def candidates(workload: BenchmarkWorkload) -> tuple[list[float], list[float]]:
    """Return the milliseconds of CPU that random candidates take to replay, and to compile."""
    target = lw.Target("cpu -num-cores=1")
    func = program(workload)
    proposals = make_strategy("random", Task(func, target), seed=0).ask(NUM_CANDIDATES + 1)
    replays, compiled = [], []
    for number, proposal in enumerate(proposals):
        start = time.thread_time()
        try:
            schedule = proposal.candidate.trace.apply_to(func)
            middle = time.thread_time()
            compile_kernel(schedule, target)
        except (ScheduleError, lw.BuildError):
            continue  # a trial that fails early
        end = time.thread_time()
        if number > 0:  # the first one includes imports on first use
            replays.append(1e3 * (middle - start))
            compiled.append(1e3 * (end - middle))
    return replays, compiled


if __name__ == "__main__":
    main()
