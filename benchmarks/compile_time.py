"""How long a candidate takes from trace to object code: `matmul` 512x512x512, random candidates."""

from __future__ import annotations

import time

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.driver import compile_artifact
from tuner.search.make import make_strategy
from tuner.task import Task

NUM_CANDIDATES = 64


def main() -> None:
    """Run the benchmark."""
    target = lw.Target("cpu -num-cores=1")
    func = lw.ops.matmul(512, 512, 512)
    proposals = make_strategy("random", Task(func, target), seed=0).ask(NUM_CANDIDATES)
    replay, compiled = [], []
    for number, proposal in enumerate(proposals):
        start = time.perf_counter()
        schedule = proposal.candidate.trace.apply_to(func)
        middle = time.perf_counter()
        compile_artifact(schedule, target)
        end = time.perf_counter()
        if number > 0:  # the first one pays for what is loaded on first use
            replay.append(1e3 * (middle - start))
            compiled.append(1e3 * (end - middle))
    both = tuple(a + b for a, b in zip(replay, compiled, strict=True))
    report(
        "compile_time",
        [
            Metric("replay the trace", "ms", tuple(replay)),
            Metric("lower, generate, compile", "ms", tuple(compiled), goal="< 30"),
            Metric("a candidate in all", "ms", both),
        ],
    )


if __name__ == "__main__":
    main()
