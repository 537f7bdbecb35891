"""Measure the time from trace to machine code of a GPU, for random candidates of several workloads.

NVRTC compiles without a GPU. The cache of cubins is not used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.kernels.traces import program
from benchmarks.report import Metric, report
from benchmarks.workloads import BY_NAME, BenchmarkWorkload
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.error import BuildError
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.error import ScheduleError
from compiler.target.cuda import CudaTarget
from tuner.search.make import make_strategy
from tuner.task import Task

NUM_CANDIDATES = 3
NAMES = (
    "matmul_512x512x512",
    "conv2d_64x56x56_64_3x3",
    "depthwise_96x112x112_3x3s2",
    "layer_norm_1024x768",
    "softmax_1024x1024",
)
TARGET = CudaTarget("cuda -gpu=h200")


@dataclass
class Steps:
    """Milliseconds of CPU by step, one number a candidate."""

    replay: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    emit: list[float] = field(default_factory=list)
    nvrtc: list[float] = field(default_factory=list)

    def lower_and_emit(self) -> tuple[float, ...]:
        """Return the times of both steps together."""
        return tuple(a + b for a, b in zip(self.lower, self.emit, strict=True))


def main() -> None:
    """Run the benchmark, on one core."""
    every, metrics = Steps(), []
    for name in NAMES:
        steps = candidates(BY_NAME[name])
        metrics.append(Metric(f"{name}: lower and emit", "ms", steps.lower_and_emit()))
        metrics.append(Metric(f"{name}: NVRTC", "ms", tuple(steps.nvrtc)))
        for step in ("replay", "lower", "emit", "nvrtc"):
            getattr(every, step).extend(getattr(steps, step))
    metrics += [
        Metric("all: replay the trace", "ms", tuple(every.replay)),
        Metric("all: lower and emit", "ms", every.lower_and_emit(), goal="<= 25"),
        Metric("all: NVRTC", "ms", tuple(every.nvrtc), goal="<= 200"),
    ]
    report("cuda_compile_time", metrics)


def candidates(workload: BenchmarkWorkload) -> Steps:
    """Return the times of random candidates; those that fail are left out."""
    func = program(workload)
    proposals = make_strategy("random", Task(func, TARGET), seed=0).ask(NUM_CANDIDATES + 1)
    steps = Steps()
    for number, proposal in enumerate(proposals):
        times = [time.thread_time()]
        try:
            scheduled = proposal.candidate.trace.apply_to(func).func
            times.append(time.thread_time())
            device_program = lower_for_device(scheduled, TARGET.limits)
            times.append(time.thread_time())
            text = emit_cuda(device_program)
            times.append(time.thread_time())
            compile_cuda(text, TARGET.arch)
            times.append(time.thread_time())
        except (BuildError, LoweringError, ScheduleError):
            continue  # a trial that fails early
        if number > 0:  # the first one includes imports on first use
            spans = [1e3 * (end - start) for start, end in pairwise(times)]
            for step, span in zip(("replay", "lower", "emit", "nvrtc"), spans, strict=True):
                getattr(steps, step).append(span)
    return steps


if __name__ == "__main__":
    main()
