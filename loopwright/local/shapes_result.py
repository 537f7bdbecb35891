"""The result of `lw.tune` over ranges of sizes: a few kernels, and the dispatcher between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compiler.backends.module import Module
from compiler.driver import build, compile_kernel
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from loopwright.local.tune_result import Trial


@dataclass(frozen=True, slots=True)
class ShapeKernel:
    """One of the kernels: a schedule of the symbolic program.

    Attributes:
        sketch: The sketch of its schedule.
        trace: Its schedule.
    """

    sketch: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class ShapeTime:
    """The times at one size, in seconds a run: the shortest sample of each.

    Attributes:
        sizes: The value of each symbolic extent.
        kernel: The number of the kernel that the dispatcher calls.
        run_secs: The time of this kernel.
        best_secs: The time of the fastest of all kernels that were tried, chosen or not.
        tuned_secs: The time of the best schedule of this size alone; None if it was not tuned.
    """

    sizes: Mapping[str, int]
    kernel: int
    run_secs: float
    best_secs: float
    tuned_secs: float | None = None

    @property
    def loss(self) -> float | None:
        """Return how much longer the dispatched kernel takes than that of this size alone.

        0.1 is a tenth; it is negative if the dispatched kernel is faster. None if the size was not
        tuned alone.
        """
        return None if self.tuned_secs is None else self.run_secs / self.tuned_secs - 1


@dataclass(frozen=True, repr=False)
class ShapesResult:
    """The result of tuning over ranges.

    Attributes:
        func: The symbolic program, with its ranges.
        target: The target.
        kernels: The kernels, at most eight, by their numbers.
        times: The times at the sizes that were tried, in ascending order.
        module: The dispatcher, which has the name of the program, and the kernels that it calls.
        trials: The trials of each tuned size, in the order of those of `times` that have
            `tuned_secs`.
    """

    func: PrimFunc
    target: Target
    kernels: tuple[ShapeKernel, ...]
    times: tuple[ShapeTime, ...]
    module: IRModule
    trials: tuple[tuple[Trial, ...], ...]

    def __repr__(self) -> str:
        kernels = f"{len(self.kernels)} kernel{'s' if len(self.kernels) > 1 else ''}"
        loss = "" if self.loss is None else f", {self.loss:+.1%} to kernels of one size"
        return f"<ShapesResult of {self.func.name} on {self.target.name}: {kernels}{loss}>"

    @property
    def dispatcher(self) -> str:
        """Return the text of the dispatcher."""
        return self.module[self.func.name].script()

    @property
    def loss(self) -> float | None:
        """Return the loss in the geometric mean over the sizes that were tuned alone."""
        ratios = [time.loss + 1 for time in self.times if time.loss is not None]
        if not ratios:
            return None
        return math.exp(sum(map(math.log, ratios)) / len(ratios)) - 1

    @cached_property
    def artifact(self) -> Artifact:
        """The compiled kernels with their dispatcher, as one artifact."""
        return compile_kernel(self.module, self.target)

    def build(self, const_params: Mapping[str, Any] | None = None) -> Module:
        """Compile the dispatcher and its kernels, and load them; see `loopwright.build`."""
        module = build(self.module, self.target, const_params)
        assert isinstance(module, Module), "the dispatcher is the only entry"
        return module
