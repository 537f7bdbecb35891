"""Measure the growth of memory over 10,000 candidates built, run and closed in one process.

It writes the samples as JSON and plots them in `benchmarks/results/memory_growth.svg`. The number
of candidates is an argument: `python -m benchmarks.compiler.memory_growth 500`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import psutil
from numpy.typing import NDArray

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.report import Metric, report
from compiler.ir.core.nodes import static_shape
from compiler.ir.interpret.oracle.oracle import random_inputs
from compiler.schedule.error import ScheduleError
from tuner.search.random import draw_points
from tuner.space.generate import design_space
from tuner.task import Task

NUM_CANDIDATES = 10_000
NUM_SAMPLES = 200
WORKLOADS = (
    "matmul:16,16,32",
    "transpose:48,64",
    "conv2d:1,4,8,8,8,3,1,1",
    "softmax:48,64",
)
_MB = 1 << 20

Samples = NDArray[np.float64]


def main(num_candidates: int = NUM_CANDIDATES) -> None:
    """Run the benchmark, plot the samples, and report the growth."""
    counts, rss = measure(num_candidates)
    settled = slice(len(rss) // 5, None)  # caches fill at first
    slope = growth(counts[settled], rss[settled])
    draw(counts, rss)
    report(
        "memory_growth",
        [
            Metric("candidates", "candidates", (float(counts[-1]),)),
            Metric("resident memory, every sample", "MB", tuple((rss / _MB).tolist())),
            Metric("growth after the first fifth", "bytes a candidate", (slope,), goal="< 500"),
        ],
    )


def measure(num_candidates: int) -> tuple[Samples, Samples]:
    """Return the number of finished candidates and the resident bytes at each sample."""
    process = psutil.Process()
    counts, rss = [], []
    every = max(1, num_candidates // NUM_SAMPLES)
    for number in run_candidates(num_candidates):
        if number % every == 0:
            counts.append(number)
            rss.append(process.memory_info().rss)
    return np.array(counts, np.float64), np.array(rss, np.float64)


def run_candidates(num_candidates: int) -> Iterator[int]:
    """Build, run and close different candidates; yield their number after each.

    The workloads take turns, so that a leak of one shows over the whole plot.
    """
    streams = [_schedules(spec, num_candidates) for spec in WORKLOADS]
    number = 0
    while streams and number < num_candidates:
        for stream in list(streams):
            if next(stream, None) is None:
                streams.remove(stream)
            elif number < num_candidates:
                number += 1
                yield number


def _schedules(spec: str, most: int) -> Iterator[bool]:
    """Yield after each candidate of a workload that was built, run and closed."""
    target = lw.Target("cpu -num-cores=1")
    func = lw.ops.from_spec(spec)
    space = design_space(Task(func, target))
    inputs = random_inputs(func, 0)
    arrays = [inputs.get(b.name, np.empty(static_shape(b), b.dtype)) for b in func.buffers]
    for point in draw_points(space, most, set(), np.random.default_rng(0)):
        try:
            module = lw.build(space.candidate(point).trace.apply_to(func), target)
        except (ScheduleError, lw.BuildError):
            continue
        module(*arrays)
        module.close()
        yield True


def growth(counts: Samples, rss: Samples) -> float:
    """Return the bytes that each candidate adds, as the slope of a fitted line."""
    return float(np.polyfit(counts, rss, 1)[0])


def draw(counts: Sequence[float] | Samples, rss: Samples) -> None:
    """Plot the samples as SVG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - of the extra `bench`

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(counts, rss / _MB, linewidth=1.2)
    axes.set_ylim(0, 1.2 * float(rss.max()) / _MB)
    axes.set_xlabel("candidates built, run and closed in one process")
    axes.set_ylabel("resident memory (MB)")
    axes.grid(alpha=0.3)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "memory_growth.svg")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
