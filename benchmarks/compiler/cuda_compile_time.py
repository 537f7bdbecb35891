"""Measure the time from trace to machine code of a GPU, for random candidates of several workloads.

NVRTC compiles without a GPU. The cache of cubins is not used. The times are those of the CPU, by
workload and by sketch. Medians over the goals are listed after the table.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

import loopwright as lw
from benchmarks.report import Metric, report
from benchmarks.workloads.table import BY_NAME
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.error import BuildError
from compiler.ir.core.program import PrimFunc
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.error import ScheduleError
from compiler.target.cuda import CudaTarget
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

NUM_CANDIDATES = 3
NAMES = (
    "matmul_512x512x512",
    "conv2d_64x56x56_64_3x3",
    "depthwise_96x112x112_3x3s2",
    "layer_norm_1024x768",
    "softmax_1024x1024",
)
# Workloads of tensor cores, by the specs of their operators.
SPECS = {
    "matmul_512x512x512_bf16": "matmul:512,512,512,acc_dtype=float32:bfloat16",
    "conv2d_nhwc_64x56x56_64_3x3_bf16": (
        "conv2d:32,64,56,56,64,3,1,1,layout=NHWC,acc_dtype=float32:bfloat16"
    ),
}
TARGET = CudaTarget("cuda -gpu=h200")
MOST_LOWERING_MS, MOST_NVRTC_MS = 25, 200


@dataclass
class Steps:
    """Milliseconds of CPU by step, one number a candidate."""

    replay: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    emit: list[float] = field(default_factory=list)
    nvrtc: list[float] = field(default_factory=list)

    def add(self, other: Steps) -> None:
        """Add the times of more candidates."""
        self.replay += other.replay
        self.lower += other.lower
        self.emit += other.emit
        self.nvrtc += other.nvrtc

    def metrics(self, name: str) -> list[Metric]:
        """Return the steps that have goals."""
        both = tuple(a + b for a, b in zip(self.lower, self.emit, strict=True))
        return [
            Metric(f"{name}: lower and emit", "ms", both, goal=f"<= {MOST_LOWERING_MS}"),
            Metric(f"{name}: NVRTC", "ms", tuple(self.nvrtc), goal=f"<= {MOST_NVRTC_MS}"),
        ]


def main() -> None:
    """Run the benchmark, on one core."""
    every, metrics = Steps(), []
    specs = {name: BY_NAME[name].spec for name in NAMES} | SPECS
    for name, spec in specs.items():
        whole, by_sketch = Steps(), measure(lw.ops.from_spec(spec))
        for steps in by_sketch.values():
            whole.add(steps)
        every.add(whole)
        metrics += whole.metrics(name)
        for sketch, steps in by_sketch.items():
            metrics += steps.metrics(f"{name} {sketch}") if len(by_sketch) > 1 else []
    metrics.append(Metric("all: replay the trace", "ms", tuple(every.replay)))
    metrics += every.metrics("all")
    report("cuda_compile_time", metrics)
    over = [m for m in metrics if m.goal and m.median > float(m.goal.removeprefix("<= "))]
    print(f"{len(over)} of {sum(bool(m.goal) for m in metrics)} medians are over their goals")
    for metric in over:
        print(f"  {metric.name}: {metric.median:.0f} ms, goal {metric.goal}")


def measure(func: PrimFunc) -> Mapping[str, Steps]:
    """Return the times of random candidates by sketch; those that fail are left out."""
    space = design_space(Task(func, TARGET))
    by_sketch: dict[str, Steps] = {}
    for number, sketch in enumerate(space.sketches):
        steps = _candidates(func, space, number)
        if steps.nvrtc:
            by_sketch[str(sketch.name)] = steps
    return by_sketch


def _candidates(func: PrimFunc, space: SketchSpace, sketch: int) -> Steps:
    steps = Steps()
    rows = space.draw(sketch, NUM_CANDIDATES + 1, np.random.default_rng(0))
    for number, row in enumerate(rows):
        trace = space.sketches[sketch].candidate(row).trace
        times = [time.thread_time()]
        try:
            scheduled = trace.apply_to(func).func
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
