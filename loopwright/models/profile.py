"""The time of a model by steps."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from compiler.backends.backend import backend_of
from compiler.executor.dtypes import numpy_dtype
from compiler.executor.executor import Executor
from compiler.ir.analysis.flops import flops
from compiler.package.assemble import LoweredModel
from compiler.package.plan import ModelPlan
from compiler.package.stepped_model import SteppedModel
from loopwright.tables import FittedTable

MIN_RUNS, MAX_RUNS = 3, 100
"""Runs of the whole model of which the shortest time of each step counts. Chosen."""
PROFILE_SECS = 1.0
"""The time after which no further run begins. Chosen."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one call of a kernel.

    Attributes:
        label: The nodes of the model that it computes.
        kernel: The name of the kernel.
        task: The key of the kernel's task.
        sketch: The name of the sketch of its schedule.
        secs: The shortest time of a call.
        flops: The floating-point operations of a call.
        peak_share: The floating-point operations a second, as a share of the measured peak of the
            cores that it uses; None without such operations.
    """

    label: str
    kernel: str
    task: str
    sketch: str
    secs: float
    flops: int
    peak_share: float | None


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The time of a model by steps, in the order of their calls."""

    steps: tuple[StepTime, ...]

    @property
    def total_secs(self) -> float:
        """Return the time of all steps together."""
        return sum(step.secs for step in self.steps)

    def secs_by_task(self) -> dict[str, float]:
        """Return the seconds of all calls of each task, by its key."""
        secs: dict[str, float] = defaultdict(float)
        for step in self.steps:
            secs[step.task] += step.secs
        return dict(secs)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON's values."""
        return asdict(self) | {"total_secs": self.total_secs}

    def show(self) -> None:
        """Print the steps, the slowest first."""
        table = Table(title=f"{self.total_secs * 1e3:.3f} ms a run")
        for heading in ("nodes", "kernel", "sketch"):
            table.add_column(heading, overflow="fold")
        for heading in ("us", "% of time", "GFLOP/s", "% of peak"):
            table.add_column(heading, justify="right")
        for step in sorted(self.steps, key=lambda step: -step.secs):
            peak = "" if step.peak_share is None else f"{step.peak_share:.0%}"
            share = step.secs / self.total_secs
            rate = f"{step.flops / step.secs / 1e9:.1f}" if step.flops else ""
            cells = (f"{step.secs * 1e6:.1f}", f"{share:.1%}", rate, peak)
            table.add_row(step.label, step.kernel, step.sketch, *cells)
        Console().print(FittedTable(table))


def profile_plan(
    plan: ModelPlan, model: LoweredModel, inputs: Mapping[str, NDArray[Any]]
) -> ModelProfile:
    """Time each step of a plan on some inputs, in whole runs of the model."""
    calls, _ = SteppedModel(plan).bind(inputs)
    secs = _shortest(calls)
    backend = backend_of(plan.target)
    peaks = {
        threads: backend.peak_flops(plan.target, threads)
        for threads in {kernel.num_threads for kernel in plan.kernels.values()}
    }
    steps = []
    for step, group, step_secs in zip(plan.steps, model.steps, secs, strict=True):
        kernel, operations = plan.kernels[step.kernel], flops(group.func)
        peak = peaks[kernel.num_threads]
        share = operations / step_secs / peak if operations and peak else None
        steps.append(
            StepTime(
                *(step.label, step.kernel, kernel.task, kernel.sketch),
                *(step_secs, operations, share),
            )
        )
    return ModelProfile(tuple(steps))


def run_secs(executor: Executor, inputs: Mapping[str, NDArray[Any]]) -> float:
    """Return the shortest time of a whole run in seconds.

    Args:
        executor: The model.
        inputs: Arrays of inputs by name; ones for those that are left out.

    Raises:
        ArgumentError: If an input is unknown, or has the wrong shape or type.
    """
    ones = {a.name: np.ones(a.shape, numpy_dtype(a.dtype)) for a in executor.inputs}
    outputs = {a.name: np.empty(a.shape, numpy_dtype(a.dtype)) for a in executor.outputs}
    return _shortest([executor.bind(ones | dict(inputs), outputs)])[0]


def _shortest(calls: Sequence[Callable[[], None]]) -> list[float]:
    """Return the shortest time of each call in seconds, over runs of all in turn."""
    shortest = [float("inf")] * len(calls)
    end = time.perf_counter() + PROFILE_SECS
    for number in range(MAX_RUNS):
        if number >= MIN_RUNS and time.perf_counter() > end:
            break
        for position, call in enumerate(calls):
            start = time.perf_counter()
            call()
            shortest[position] = min(shortest[position], time.perf_counter() - start)
    return shortest
